"""Windows: equal spans of time to which samples are reduced before rules look at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

_WIDTHS_S = (10, 30, 60)
"""Each divides the next, and from the last on they double: windows can be joined to wider ones."""
MAX_WINDOWS = 2880
MIN_WIDTH_S = _WIDTHS_S[0]
MAX_VALUE = 1e300
"""No metric is larger: a reading beyond it, or an infinite one, is a fault and counts as a gap."""
SAMPLES_PER_WINDOW = 2
_AT_ONCE = 64
"""Series that are reduced together."""


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Consecutive windows of the same width.

    Args:
        start_ms: begin of the first, ms UTC; a multiple of the width.
        width_ms: of each.
        count: of windows.
    """

    start_ms: int
    width_ms: int
    count: int

    @property
    def end_ms(self) -> int:
        """The end of the last window, ms UTC."""
        return self.start_ms + self.width_ms * self.count

    @property
    def width_s(self) -> float:
        """The width in seconds."""
        return self.width_ms / 1000

    @property
    def edges_ms(self) -> NDArray[np.int64]:
        """Begin of each window, and the end of the last."""
        return self.start_ms + np.arange(self.count + 1, dtype=np.int64) * self.width_ms

    def index(self, time_ms: int) -> int:
        """The window that contains a time; the first or last for times before or after."""
        return min(max((time_ms - self.start_ms) // self.width_ms, 0), self.count - 1)

    def number(self, seconds: float) -> int:
        """How many windows a duration takes, at least two: one window never decides."""
        return max(2, round(seconds * 1000 / self.width_ms))


def windows_of(start_ms: int, end_ms: int, interval_s: float) -> TimeWindows:
    """Return the windows for a run of this extent, sampled every `interval_s`.

    They hold two samples or more, and are at least 10 seconds wide and at most 2,880.
    """
    least_s = max(
        MIN_WIDTH_S, SAMPLES_PER_WINDOW * interval_s, (end_ms - start_ms) / 1000 / (MAX_WINDOWS - 1)
    )
    width_s = next((width for width in _WIDTHS_S if width >= least_s), None)
    if width_s is None:
        width_s = _WIDTHS_S[-1] * 2 ** ceil(log2(least_s / _WIDTHS_S[-1]))
    width_ms = 1000 * width_s
    first_ms = start_ms // width_ms * width_ms
    return TimeWindows(first_ms, width_ms, max(1, -(-(end_ms - first_ms) // width_ms)))


def interval_of(samples: NDArray[np.int64], windows: TimeWindows) -> float:
    """Return the usual seconds between samples, by how many each window has; 0 if that is unknown.

    Gaps do not count.
    """
    filled = np.flatnonzero(samples)
    if len(filled) < 2:
        return 0.0
    distances = np.diff(filled)
    usual = distances <= 2 * np.median(distances)
    return float(windows.width_s * distances[usual].sum() / samples[filled[1:]][usual].sum())


@dataclass(frozen=True, slots=True, eq=False)
class WindowColumn:
    """A series reduced to windows; NaN where a window has no value."""

    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class HostColumns:
    """The series of one host in windows.

    Args:
        name: of the host.
        samples: per window, how many samples of the host it has.
        interval_s: between samples.
    """

    name: str
    windows: TimeWindows
    columns: Mapping[str, WindowColumn]
    samples: NDArray[np.int64]
    interval_s: float
    _growth: dict[str, Floats] = field(default_factory=dict, repr=False)

    def has(self, key: str) -> bool:
        """Whether the host has values of a key."""
        return key in self.columns

    def mean(self, key: str) -> Floats:
        """The mean of each window; all NaN for a key that the host does not have."""
        column = self.columns.get(key)
        return self.nothing() if column is None else column.mean

    def low(self, key: str) -> Floats:
        """The smallest value of each window."""
        column = self.columns.get(key)
        return self.nothing() if column is None else column.low

    def high(self, key: str) -> Floats:
        """The largest value of each window."""
        column = self.columns.get(key)
        return self.nothing() if column is None else column.high

    def growth(self, key: str) -> Floats:
        """By how much a counter grew in each window. A reset and the first reading are NaN."""
        growth = self._growth.get(key)
        if growth is None:
            growth = self._growth[key] = _growth(self.columns[key]) if self.has(key) else self.nothing()
        return growth

    def per_second(self, key: str) -> Floats:
        """The growth of a counter per second."""
        return self.growth(key) / self.windows.width_s

    def nothing(self) -> Floats:
        """A column without values."""
        return np.full(self.windows.count, np.nan)


def _growth(column: WindowColumn) -> Floats:
    """The growth of a counter from the last value of one window to the last of the next that has any."""
    last = column.high
    present = np.flatnonzero(~np.isnan(last))
    growth = np.full(len(last), np.nan)
    if len(present) == 0:
        return growth
    steps = np.diff(last[present])
    gaps = np.diff(present)
    # Spread over the windows of a gap: what happened in it is known as a sum only.
    steady = (steps >= 0) & (column.low[present[1:]] >= last[present[:-1]] * (1 - 1e-12))
    growth[present[1:]] = np.where(steady, steps / gaps, np.nan)
    return growth


def reduce_samples(
    name: str, series: Mapping[str, tuple[NDArray[np.int64], Floats]], windows: TimeWindows, interval_s: float
) -> HostColumns:
    """Reduce the samples of one host to windows.

    Args:
        series: times (ms UTC, ascending) and values by key. NaN is a gap.
    """
    columns: dict[str, WindowColumn] = {}
    by_times: dict[int, tuple[NDArray[np.int64], list[str]]] = {}
    for key, (times_ms, _) in series.items():
        by_times.setdefault(id(times_ms), (times_ms, []))[1].append(key)
    samples = np.zeros(windows.count, dtype=np.int64)
    sampled_ms: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    for times_ms, keys in by_times.values():
        if len(times_ms) > len(sampled_ms):
            sampled_ms = times_ms
        cut = _cut(times_ms, windows)
        if not len(cut[1]):
            continue
        for first in range(0, len(keys), _AT_ONCE):
            part_keys = keys[first : first + _AT_ONCE]
            values = np.vstack([series[key][1] for key in part_keys])
            present = np.abs(values) < MAX_VALUE  # False for NaN, a gap
            complete = present.all(axis=1)
            columns.update(
                zip(
                    np.array(part_keys)[complete].tolist(),
                    _reduce(values[complete], *cut, windows.count),
                    strict=True,
                )
            )
            for row in np.flatnonzero(~complete & present.any(axis=1)):
                valid = present[row]
                reduced = _reduce(
                    values[row : row + 1, valid], *_cut(times_ms[valid], windows), windows.count
                )
                columns.update(zip([part_keys[row]], reduced, strict=False))
    if len(sampled_ms):
        inside = (sampled_ms >= windows.start_ms) & (sampled_ms < windows.end_ms)
        indices = (sampled_ms[inside] - windows.start_ms) // windows.width_ms
        samples += np.bincount(indices, minlength=windows.count)
    return HostColumns(name, windows, columns, samples, interval_s)


def _cut(times_ms: NDArray[np.int64], windows: TimeWindows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the values of each filled window begin, then the end, and which windows these are."""
    bounds = np.searchsorted(times_ms, windows.edges_ms)
    filled = np.flatnonzero(np.diff(bounds))
    return np.append(bounds[filled], bounds[-1]), filled


def _reduce(
    values: Floats, first: NDArray[np.int64], filled: NDArray[np.int64], count: int
) -> list[WindowColumn]:
    """Reduce series, one in each row; none if no window has a value."""
    if not len(filled) or not len(values):
        return []
    begins, end = first[:-1], int(first[-1])
    inside = values[:, :end]
    arrays = np.full((3, len(values), count), np.nan)
    arrays[0][:, filled] = np.add.reduceat(inside, begins, axis=1) / np.diff(first)
    arrays[1][:, filled] = np.minimum.reduceat(inside, begins, axis=1)
    arrays[2][:, filled] = np.maximum.reduceat(inside, begins, axis=1)
    return [WindowColumn(*arrays[:, row]) for row in range(len(values))]
