"""The durations of the measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Durations and counts of a benchmark.

    Attributes:
        settle_s: from a tool's start to the start of a measurement.
        second_s, tenth_s: measurement windows at sampling intervals of 1 s and 0.1 s.
        events: minimum number of samples in a training loop.
        processes: fresh training processes in which imports and starts are timed.
        kills: of the training process and of the monitor, each.
        printing: pairs of processes that print.
    """

    settle_s: float
    second_s: float
    tenth_s: float
    events: int
    processes: int
    kills: int
    printing: int


# CPython 3.11 specializes code at its eighth call, so the long-term cost is reached after eight samples.
FULL = Plan(settle_s=12.0, second_s=20.0, tenth_s=8.0, events=64, processes=9, kills=20, printing=3)
QUICK = Plan(settle_s=1.5, second_s=5.0, tenth_s=2.0, events=15, processes=3, kills=3, printing=1)
