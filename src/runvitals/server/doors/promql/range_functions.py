"""Functions of range vectors: what the samples before each step say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.promql.syntax import QueryError
from runvitals.server.doors.promql.vectors import NAME, Range, VectorSeries, without


@dataclass(frozen=True)
class Windows:
    """The windows of a range vector.

    Args:
        ends: of the windows, ms UTC, ascending. The ends belong to the windows, their starts do not.
        range_ms: their length.
    """

    ends: Integers
    range_ms: int

    def bounds(self, samples: Range) -> tuple[Integers, Integers]:
        """Return the places of the first sample of each window, and of that after its last one."""
        first = np.searchsorted(samples.t, self.ends - self.range_ms, side="right")
        return first, np.searchsorted(samples.t, self.ends, side="right")


_CHECKED: Final = 1000
"""Windows between two checks of the deadline."""
_LOOKED_AT: Final = 100_000
"""Samples of windows between two checks: windows may overlap, and each may have a million samples."""
Window = Callable[[Integers, Floats, float], float]
"""(times, values, parameter) → value of one window that is not empty."""


def over_windows(samples: Range, windows: Windows, compute: Window, parameters: Floats) -> VectorSeries:
    """Return a function that looks at all samples of each window."""
    first, after = windows.bounds(samples)
    values = np.full(len(windows.ends), np.nan)
    looked_at = 0
    for step, (begin, end) in enumerate(zip(first.tolist(), after.tolist(), strict=True)):
        looked_at += end - begin
        if step % _CHECKED == 0 or looked_at > _LOOKED_AT:
            deadline.check()
            looked_at = 0
        if begin < end:
            values[step] = compute(samples.t[begin:end], samples.values[begin:end], float(parameters[step]))
    return VectorSeries(samples.labels, values, after > first)


def _adjust(values: Floats) -> Floats:
    """Return a counter without its resets."""
    if len(values) < 2:
        return values
    falls = np.diff(values) < 0
    lost = np.where(falls, values[:-1], 0.0)
    return values + np.concatenate(([0.0], np.cumsum(lost)))


def extrapolate(samples: Range, windows: Windows, is_counter: bool, per_second: bool) -> VectorSeries:
    """Evaluate `rate`, `increase` or `delta`.

    The growth between the first and last sample of each window, extrapolated to the ends of the window as
    Prometheus does.
    """
    ends = windows.ends
    first, after = windows.bounds(samples)
    present = after - first >= 2
    begin, last = np.where(present, first, 0), np.where(present, after - 1, 0)
    values = _adjust(samples.values) if is_counter else samples.values
    t = samples.t / 1000.0
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = values[last] - values[begin]
        sampled = t[last] - t[begin]
        between = sampled / np.maximum(after - first - 1, 1)
        to_start = t[begin] - (ends - windows.range_ms) / 1000.0
        to_end = ends / 1000.0 - t[last]
        to_start = np.where(to_start >= between * 1.1, between / 2, to_start)
        to_end = np.where(to_end >= between * 1.1, between / 2, to_end)
        if is_counter:
            beginning = samples.values[begin]
            to_zero = np.where((grown > 0) & (beginning >= 0), sampled * beginning / grown, to_start)
            to_start = np.minimum(to_start, to_zero)
        result = grown * (sampled + to_start + to_end) / sampled
        if per_second:
            result = result / (windows.range_ms / 1000.0)
    return VectorSeries(without(samples.labels, (NAME,)), result, present)


def instant(samples: Range, windows: Windows, is_rate: bool) -> VectorSeries:
    """Evaluate `irate` or `idelta`: of the last two samples of each window."""
    first, after = windows.bounds(samples)
    present = after - first >= 2
    last = np.where(present, after - 1, 1 if len(samples.t) > 1 else 0)
    before = np.maximum(last - 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = samples.values[last] - samples.values[before]
        if is_rate:
            grown = np.where(grown < 0, samples.values[last], grown)
            grown = grown / ((samples.t[last] - samples.t[before]) / 1000.0)
    return VectorSeries(without(samples.labels, (NAME,)), grown, present)


def slope(t: Integers, values: Floats, origin_ms: float) -> tuple[float, float]:
    """Return the line of least squares: its slope per second, and its value at `origin_ms`."""
    x = (t - origin_ms) / 1000.0
    mean = x.mean()
    spread = float(((x - mean) ** 2).sum())
    if spread == 0:
        return float("nan"), float("nan")
    gradient = float(((x - mean) * (values - values.mean())).sum()) / spread
    return gradient, float(values.mean() - gradient * mean)


def deriv(samples: Range, windows: Windows) -> VectorSeries:
    """Return the slope of each window with two samples or more."""

    def compute(t: Integers, values: Floats, _: float) -> float:
        return slope(t, values, float(t[0]))[0] if len(t) > 1 else float("nan")

    line = over_windows(samples, windows, compute, np.zeros(len(windows.ends)))
    first, after = windows.bounds(samples)
    return VectorSeries(without(samples.labels, (NAME,)), line.values, after - first >= 2)


def smooth(samples: Range, windows: Windows, smoothing: Floats, trend: Floats) -> VectorSeries:
    """Evaluate `double_exponential_smoothing` at the end of each window with two samples or more.

    Raises:
        QueryError: a factor is not between 0 and 1.
    """
    for name, factors in (("smoothing", smoothing), ("trend", trend)):
        wrong = factors[~((factors > 0) & (factors < 1))]
        if len(wrong):
            text = f"invalid {name} factor: expected 0 < factor < 1, got {wrong[0]:g}"
            raise QueryError(text, "execution")
    first, after = windows.bounds(samples)
    values = np.full(len(windows.ends), np.nan)
    looked_at = 0
    for step in np.flatnonzero(after - first >= 2).tolist():
        window = samples.values[first[step] : after[step]].tolist()
        looked_at += len(window)
        if looked_at > _LOOKED_AT:
            deadline.check()
            looked_at = 0
        values[step] = _smoothed_end(window, float(smoothing[step]), float(trend[step]))
    return VectorSeries(without(samples.labels, (NAME,)), values, after - first >= 2)


def _smoothed_end(values: list[float], smoothing: float, trend: float) -> float:
    before, level, growth = 0.0, values[0], values[1] - values[0]
    for index, value in enumerate(values[1:]):
        if index:
            growth = trend * (level - before) + (1 - trend) * growth
        before, level = level, smoothing * value + (1 - smoothing) * (level + growth)
    return level


def quantile(fraction: float, values: Floats) -> float:
    """Return Prometheus' quantile: interpolated; infinite outside 0 to 1."""
    if np.isnan(fraction) or not len(values):
        return float("nan")
    if fraction < 0 or fraction > 1:
        return float("-inf") if fraction < 0 else float("inf")
    return float(np.quantile(values, fraction))


def _changes(values: Floats) -> int:
    """Count how often a value differs from the one before; NaN does not differ from NaN."""
    missing = np.isnan(values)
    return int(((values[1:] != values[:-1]) & ~(missing[1:] & missing[:-1])).sum())


OVER_TIME: Final[dict[str, Window]] = {
    "avg_over_time": lambda t, v, _: float(v.mean()),
    "min_over_time": lambda t, v, _: float(np.fmin.reduce(v)),  # NaN if all are
    "max_over_time": lambda t, v, _: float(np.fmax.reduce(v)),
    "sum_over_time": lambda t, v, _: float(v.sum()),
    "count_over_time": lambda t, v, _: float(len(v)),
    "last_over_time": lambda t, v, _: float(v[-1]),
    "present_over_time": lambda t, v, _: 1.0,
    "stddev_over_time": lambda t, v, _: float(v.std()),
    "stdvar_over_time": lambda t, v, _: float(v.var()),
    "quantile_over_time": lambda t, v, fraction: quantile(fraction, v),
    "changes": lambda t, v, _: float(_changes(v)),
    "resets": lambda t, v, _: float((np.diff(v) < 0).sum()),
}
KEEPS_NAME: Final = "last_over_time"
