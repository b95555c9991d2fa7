"""Stall of a training loop by a sampler, step times laid beside the moments at which samples were taken.

Comparing whole runs with and without a sampler drowns a loss of 0.1 % in the noise of the machine. Comparing
the steps during a sample with the steps just before it does not: whatever slows both alike falls out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

# Steps left out between the sample and the steps it is compared with.
APART = 2


@dataclass(frozen=True)
class Stall:
    """Milliseconds that a sample takes from the training loop.

    Attributes:
        median, p90: over all samples.
        worst_step: by how much the slowest step during a sample exceeds a usual one, median over samples.
        events: samples compared.
    """

    median: float
    p90: float
    worst_step: float
    events: int


def stall(ends_ns: Sequence[int], events_ns: Sequence[tuple[int, int]]) -> Stall:
    """The stall per sample.

    Args:
        ends_ns: when each step ended; a step begins where the one before ended.
        events_ns: (begin, end) of each sample on the same clock, in order.

    For every sample: the time of the k steps that overlap it, less the time of the k steps before them.
    Samples too near to the one before, or to the loop's beginning or end, are left out.

    Raises:
        ValueError: fewer than two samples fall into the loop.
    """
    durations = [0, *(after - before for before, after in pairwise(ends_ns))]
    excess: list[float] = []
    worst: list[float] = []
    busy_until = ends_ns[0] if ends_ns else 0
    for begin, end in events_ns:
        first, last = bisect_right(ends_ns, begin), bisect_left(ends_ns, end)
        count = last - first + 1
        control = first - APART - count
        if control >= 1 and last < len(ends_ns) and ends_ns[control - 1] >= busy_until:
            before = durations[control : control + count]
            during = durations[first : last + 1]
            excess.append((sum(during) - sum(before)) / 1e6)
            worst.append((max(during) - median(before)) / 1e6)
        busy_until = max(busy_until, end)
    if len(excess) < 2:
        raise ValueError(f"{len(excess)} of {len(events_ns)} samples fall into the loop; 2 are needed")
    return Stall(median(excess), quantiles(excess, n=10)[-1], median(worst), len(excess))
