"""Derives rates from counters. Rates are never stored.

    rate(i) = (c(i) − c(i−1)) ÷ ((t(i) − t(i−1)) ÷ 1000) × factor

A counter that decreases was reset; the rate of that interval is a gap (NaN). So is an interval with a gap at
either end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from runvitals.model.metrics import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate's key, its counter's key, and the factor from counter units per second to the rate's unit."""

    key: str
    counter: str
    factor: float


def rate_of(counter: str) -> Rate | None:
    """Return the rate that is derived from a counter, or None.

    Example:
        >>> rate_of("disk.in").key
        'disk.readMBps'
    """
    match = DEFINITIONS.find(counter)
    if match is None:
        return None
    metric = DEFINITIONS.rate_of.get(match.metric.key)
    return None if metric is None else Rate(metric.key.format(**match.labels), counter, metric.factor)


def rate_between(t0_ms: int, value0: float, t1_ms: int, value1: float, factor: float) -> float:
    """Return the rate between two samples of a counter; NaN after a reset, at a gap, or if no time passed."""
    growth = value1 - value0
    if isnan(growth) or growth < 0 or t1_ms <= t0_ms:
        return NAN
    return growth / ((t1_ms - t0_ms) / 1000.0) * factor


def derive(t: Any, values: Any, factor: float) -> tuple[Any, Any]:
    """Return (times, rates) of a counter's samples, one for each but the first.

    They are numpy arrays for arrays, lists for lists.

    Example:
        >>> derive([0, 1000, 2000, 3000], [0.0, 5.0, 1.0, 2.0], 1.0)
        ([1000, 2000, 3000], [5.0, nan, 1.0])
    """
    if hasattr(values, "dtype"):
        return _derive_arrays(t, values, factor)
    return _derive_lists(t, values, factor)


def _derive_lists(t: Sequence[int], values: Sequence[float], factor: float) -> tuple[list[int], list[float]]:
    pairs = zip(t, values, t[1:], values[1:], strict=False)
    return list(t[1:]), [rate_between(*pair, factor) for pair in pairs]


def _derive_arrays(t: Any, values: Any, factor: float) -> tuple[Any, Any]:
    import numpy

    growth = numpy.diff(values)
    seconds = numpy.diff(t) / 1000.0
    with numpy.errstate(divide="ignore", invalid="ignore"):
        rates = growth / seconds * factor
    rates[(growth < 0) | (seconds <= 0) | numpy.isnan(growth)] = NAN
    return t[1:], rates
