"""The load of a device over a block of samples, and helpers to derive its readings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from runvitals.tools.simulate.noise import Floats


@dataclass(slots=True)
class DeviceLoad:
    """The load of a device, sample by sample. Shares are from 0 to 1.

    Args:
        busy: share of the time during which anything runs.
        work: intensity of the work, which determines power.
        traffic: used share of the bandwidth to other devices.
        filled: used share of its memory.
        heat_c: excess air temperature.
        clock: share of the nominal clock.
        dt_s: recorded seconds since the previous sample, by which counters grow.
        lag_s: simulated seconds since the previous sample, by which temperatures change.
    """

    busy: Floats
    work: Floats
    traffic: Floats
    filled: Floats
    heat_c: Floats
    clock: Floats
    dt_s: Floats
    lag_s: float


class LaggedValue:
    """A value that follows its target with first-order lag.

    Example:
        >>> LaggedValue(30.0, inertia_s=20.0)(np.array([70.0, 70.0]), 20.0)
        array([50., 60.])
    """

    __slots__ = ("_inertia_s", "value")

    def __init__(self, value: float, inertia_s: float) -> None:
        self.value = value
        self._inertia_s = inertia_s

    def __call__(self, targets: Floats, lag_s: float) -> Floats:
        """Return the values that follow these targets, each `lag_s` seconds after the one before."""
        part = lag_s / (lag_s + self._inertia_s)
        followed = list(accumulate(targets.tolist(), lambda y, x: y + (x - y) * part, initial=self.value))
        self.value = followed[-1]
        return np.array(followed[1:])


class RunningTotal:
    """A counter: the cumulative sum, continued from block to block.

    Example:
        >>> total = RunningTotal()
        >>> total(np.array([0.0, 2.0])), total(np.array([3.0]))
        (array([0., 2.]), array([5.]))
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self, added: Floats) -> Floats:
        """Return the running totals after each of these amounts."""
        totals: Floats = self.value + np.cumsum(added)
        self.value = float(totals[-1])
        return totals


def share(values: Floats) -> Floats:
    """Return values clipped to 0 to 1."""
    return np.clip(values, 0.0, 1.0)


def rounded(values: Floats, digits: int = 0) -> Floats:
    """Return values rounded to a driver's resolution."""
    counted: Floats = np.round(values, digits)
    return counted


def percent(values: Floats, digits: int = 2) -> Floats:
    """Return shares as percentages, clipped to 0 to 100."""
    return rounded(100.0 * share(values), digits)
