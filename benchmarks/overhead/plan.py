"""How long everything is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Seconds and counts of one run of the benchmark.

    Attributes:
        settle_s: from a peer's start to the beginning of a measurement.
        second_s, tenth_s: windows at intervals of 1 s and of 0.1 s.
        events: samples in a training loop, at least.
        processes: fresh training processes to time imports and starts in.
        kills: of training process and of monitor, each.
    """

    settle_s: float
    second_s: float
    tenth_s: float
    events: int
    processes: int
    kills: int


# CPython 3.11 makes code faster at its eighth call: what a run pays for hours begins after eight samples.
FULL = Plan(settle_s=12.0, second_s=20.0, tenth_s=8.0, events=64, processes=9, kills=20)
QUICK = Plan(settle_s=1.5, second_s=5.0, tenth_s=2.0, events=15, processes=3, kills=3)
