"""Statistics of a series: count, min, max, mean, percentiles, last value, and a counter's total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isnan
from typing import Any

from runvitals.readers.journals.arrays import numpy_or_none
from runvitals.readers.journals.key_filter import find
from runvitals.readers.journals.series import Series


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of one series over its samples that have a value; all None if there are none.

    `p50` and `p95` are percentiles, interpolated linearly. `total` is a counter's increase, not counting
    resets; None for a gauge.
    """

    key: str
    host: str
    unit: str
    n: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    last: float | None = None
    total: float | None = None


def of_columns(columns: Iterable[Series]) -> list[Statistics]:
    """Return the statistics of each series, in order."""
    return [of_series(series) for series in columns]


def of_series(series: Series) -> Statistics:
    """Return the statistics of one series.

    Example:
        >>> of_series(Series("cpu", "node1", "monitor", [0, 1000], [1.0, 3.0])).mean
        2.0
    """
    match = find(series.key)
    unit = series.unit
    values = _present(series.values)
    if not len(values):
        return Statistics(series.key, series.host, unit, 0)
    ordered = sorted(values) if isinstance(values, list) else numpy_or_none().sort(values)
    return Statistics(
        key=series.key,
        host=series.host,
        unit=unit,
        n=len(values),
        min=float(ordered[0]),
        max=float(ordered[-1]),
        mean=float(sum(values) if isinstance(values, list) else values.sum()) / len(values),
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        last=float(values[-1]),
        total=total_increase(values) if match is not None and match.metric.kind == "counter" else None,
    )


def _present(values: Any) -> Any:
    """Return the values that are not NaN, as a list or numpy array, like the input."""
    if isinstance(values, list):
        return [value for value in values if not isnan(value)]
    return values[~numpy_or_none().isnan(values)]


def percentile(ordered: Any, percent: float) -> float:
    """Return a percentile of ascending values, interpolated linearly.

    Example:
        >>> percentile([1.0, 2.0, 3.0], 75)
        2.5
    """
    position = (len(ordered) - 1) * percent / 100
    low, high = float(ordered[floor(position)]), float(ordered[ceil(position)])
    return low if low == high else low + (high - low) * (position - floor(position))


def total_increase(values: Any) -> float:
    """Return a counter's total increase.

    A decrease is a reset; the increase between the last sample before the reset and the reset itself is
    unknown and not included.
    """
    if isinstance(values, list):
        return float(sum(later - before for before, later in pairwise(values) if later > before))
    steps = numpy_or_none().diff(values)
    return float(steps[steps > 0].sum())
