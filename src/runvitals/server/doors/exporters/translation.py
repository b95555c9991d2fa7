"""Translations of series of exporters to ours, and metrics that are computed from several series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from runvitals.model.metrics import DEFINITIONS

Values = Mapping[str, float]
_SLACK: Final = 1.1
"""Shares are computed from readings that are not of quite the same time."""
_FAULTY: Final = 2.0
"""Up to this multiple of the highest, a larger value is a known fault of an exporter."""


class ScrapedMoment(NamedTuple):
    """The values of a derived metric's series at one time.

    Args:
        t: ms UTC.
        values: by the name of the input.
        outputs: the keys that were computed from it.
    """

    t: int
    values: Values
    outputs: Values


Compute = Callable[[ScrapedMoment | None, int, Values], dict[str, float]]
"""(the moment before, the time, the values then) → our keys and their values."""


@dataclass(frozen=True, eq=False)
class Derived:
    """Metrics of a host that are computed from several series.

    Args:
        name: the same name on the same host is the same metric.
        compute: computes it once all inputs of a time have arrived.
        required: the inputs that are enough; empty: those of the time before.
    """

    name: str
    compute: Compute
    required: frozenset[str] = frozenset()


class Input(NamedTuple):
    """A series as an input of a derived metric."""

    of: Derived
    name: str


@dataclass(frozen=True)
class Translation:
    """Our key for a series of an exporter, and what to do with its values.

    Args:
        key: our key; None: it is only an input.
        factor: from the exporter's unit to ours.
        highest: larger values of the exporter are faults, and become this.
        has_blanks: whether some numbers are DCGM's codes for "no value".
        inputs: the derived metrics that it is a part of.
    """

    key: str | None = None
    factor: float = 1.0
    highest: float = inf
    has_blanks: bool = False
    inputs: tuple[Input, ...] = ()

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the most that a value of the exporter can be; others stand for no value."""
        least, most = possible(self.key, self.factor)
        return least, most if self.highest == inf else self.highest * _FAULTY


def possible(key: str | None, factor: float = 1.0) -> tuple[float, float]:
    """Return the least and the most that a value can be which is multiplied by a factor to be one of ours.

    >>> possible("gpu.0.temp"), possible("any/other")
    ((-60.0, 220.00000000000003), (-inf, inf))
    """
    match = None if key is None else DEFINITIONS.find(key)
    if match is None:
        return -inf, inf
    return match.metric.least / factor, match.metric.most * _SLACK / factor


def sum_of(key: str, factor: float = 1.0) -> Derived:
    """Return the sum of gauges."""
    return Derived(key, lambda before, t, values: {key: sum(values.values()) * factor})


def mean_of(key: str, factor: float = 1.0) -> Derived:
    """Return the mean of gauges."""
    return Derived(key, lambda before, t, values: {key: sum(values.values()) / len(values) * factor})


def total_of(key: str, factor: float = 1.0) -> Derived:
    """Return the total growth of counters since the first moment.

    It does not fall when one of them disappears.
    """

    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        if before is None:
            return {key: 0.0}
        grown = sum(
            growth(before.values[name], value) for name, value in values.items() if name in before.values
        )
        return {key: before.outputs.get(key, 0.0) + grown * factor}

    return Derived(key, compute)


def growth(before: float, now: float) -> float:
    """Return by how much a counter grew; one that fell started again from zero."""
    return now - before if now >= before else now


def seconds_between(before: ScrapedMoment, t: int) -> float:
    """Return the seconds since a moment."""
    return (t - before.t) / 1000.0
