"""The delay of a training loop by a sampler, from the times of steps and of samples.

A loss of 0.1 % would be lost in the noise if whole runs with and without a sampler were compared. Therefore
the steps during a sample are compared with the steps just before it: what slows both equally cancels out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

# Steps skipped between a sample and the steps it is compared with.
APART = 2


@dataclass(frozen=True)
class Stall:
    """The delay of the training loop by a sample, in ms.

    Attributes:
        median, p90: over all samples.
        worst_step: excess duration of the slowest step during a sample, median over samples.
        events: number of samples compared.
    """

    median: float
    p90: float
    worst_step: float
    events: int


def stall(ends_ns: Sequence[int], events_ns: Sequence[tuple[int, int]]) -> Stall:
    """The stall per sample.

    Args:
        ends_ns: when each step ended; a step starts when the previous one ends.
        events_ns: (start, end) of each sample on the same clock, in order.

    For every sample: the duration of the k steps that overlap it, minus the duration of the k steps before.
    Samples too close to the previous one, or to the start or end of the loop, are omitted.

    Raises:
        ValueError: fewer than two samples are within the loop.
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
        raise ValueError(f"{len(excess)} of {len(events_ns)} samples are within the loop; 2 are needed")
    return Stall(median(excess), quantiles(excess, n=10)[-1], median(worst), len(excess))
