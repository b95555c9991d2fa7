"""The load of a device over a block of samples, and how its readings follow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from runvitals.simulate.noise import Floats


@dataclass(slots=True)
class Load:
    """What is asked of a device, sample by sample; all shares are from 0 to 1.

    Args:
        busy: share of the time in which anything runs on it.
        work: how hard it then works, which is what takes power.
        traffic: share of its links to other devices that is used.
        filled: share of its memory that is used.
        heat_c: by how much the air is warmer than it should be.
        clock: share of its clock that it reaches.
        dt_s: seconds since the sample before, as they are recorded: counters grow by them.
        lag_s: seconds of the story that passed meanwhile: temperatures follow by them.
    """

    busy: Floats
    work: Floats
    traffic: Floats
    filled: Floats
    heat_c: Floats
    clock: Floats
    dt_s: Floats
    lag_s: float


class Follower:
    """A value that follows its target with some inertia, for whatever step of time.

    Example:
        >>> Follower(30.0, inertia_s=20.0)(np.array([70.0, 70.0]), 20.0)
        array([50., 60.])
    """

    __slots__ = ("_inertia_s", "value")

    def __init__(self, value: float, inertia_s: float) -> None:
        self.value = value
        self._inertia_s = inertia_s

    def __call__(self, targets: Floats, lag_s: float) -> Floats:
        part = lag_s / (lag_s + self._inertia_s)
        followed = list(accumulate(targets.tolist(), lambda y, x: y + (x - y) * part, initial=self.value))
        self.value = followed[-1]
        return np.array(followed[1:])


class Total:
    """A counter: what was added to it so far, sample by sample.

    Example:
        >>> total = Total()
        >>> total(np.array([0.0, 2.0])), total(np.array([3.0]))
        (array([0., 2.]), array([5.]))
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self, added: Floats) -> Floats:
        totals: Floats = self.value + np.cumsum(added)
        self.value = float(totals[-1])
        return totals


def share(values: Floats) -> Floats:
    """Within 0 and 1."""
    return np.clip(values, 0.0, 1.0)


def rounded(values: Floats, digits: int = 0) -> Floats:
    """In the steps in which a driver counts."""
    counted: Floats = np.round(values, digits)
    return counted


def percent(values: Floats, digits: int = 2) -> Floats:
    """Shares as per cent, within 0 and 100."""
    return rounded(100.0 * share(values), digits)
