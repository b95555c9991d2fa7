"""Downsampling to buckets of width w at t0 + i·w, with min, max, mean, last and count.

t0 is a multiple of w since 1970, so that the same time range always falls into the same buckets. Requires
numpy. Measured on one core: 10,000 points 0.25 ms, a million 3 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Statistic = Literal["min", "max", "mean", "last", "sum"]

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
WIDTHS_MS: tuple[int, ...] = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28)),
)
"""Bucket widths that read well on a time axis."""
STEP_WIDTHS: tuple[int, ...] = tuple(n * 10**power for power in range(16) for n in (1, 2, 5))
"""Those of steps of a training."""


@dataclass(frozen=True, slots=True)
class Grid:
    """`count` buckets of `width_ms`, the first starting at `t0_ms` (ms UTC)."""

    t0_ms: int
    width_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of one series that contain a sample.

    Args:
        t: start of each bucket, ms UTC.
        n: number of samples with a value; 0 if present are only gaps, and then all statistics are NaN.
        min, max, mean, last: of those samples.
    """

    t: Integers
    n: Integers
    min: Floats
    max: Floats
    mean: Floats
    last: Floats

    def statistic(self, name: Statistic) -> Floats:
        """Return a statistic by its name in the metric definitions (`Metric.merge`)."""
        if name == "sum":
            return self.mean * self.n
        column: Floats = getattr(self, name)
        return column


def grid(t0_ms: int, t1_ms: int, max_points: int, widths: tuple[int, ...] = WIDTHS_MS) -> Grid:
    """Return the finest grid with at most `max_points` buckets that covers `t0_ms` to `t1_ms`, inclusive.

    Raises:
        ValueError: the end is before the start, or fewer than 2 points.

    Example:
        >>> grid(1_234, 61_234, 100)
        Grid(t0_ms=1000, width_ms=1000, count=61)
    """
    if t1_ms < t0_ms:
        raise ValueError(f"invalid time range: the end ({t1_ms}) is before the start ({t0_ms})")
    if max_points < 2:
        raise ValueError(f"invalid number of points {max_points}: expected at least 2")
    width = next((w for w in widths if _count(t0_ms, t1_ms, w) <= max_points), widths[-1])
    while _count(t0_ms, t1_ms, width) > max_points:
        width *= 2
    return Grid(t0_ms // width * width, width, _count(t0_ms, t1_ms, width))


def _count(t0_ms: int, t1_ms: int, width: int) -> int:
    return t1_ms // width - t0_ms // width + 1


def reduce(grid: Grid, t: Integers, values: Floats) -> Buckets:
    """Return the buckets of a series on a grid; samples outside it are ignored, and NaN is a gap."""
    return Partition(grid, t).reduce(values)


class Partition:
    """The bucket of each time in `t`, computed once for all series that share these times.

    Args:
        t: ms UTC, ascending.

    Example:
        >>> Partition(Grid(0, 10, 3), np.array([1, 4, 25])).reduce(np.array([5.0, 7.0, 9.0])).mean
        array([6., 9.])
    """

    __slots__ = ("_ends", "_starts", "_within", "t")

    def __init__(self, grid: Grid, t: Integers) -> None:
        first, last = np.searchsorted(t, (grid.t0_ms, grid.t0_ms + grid.count * grid.width_ms), side="left")
        self._within = slice(int(first), int(last))
        t = t[self._within]
        if grid.count > len(t):  # most buckets are empty: compute the bucket of each sample instead
            indices = (t - grid.t0_ms) // grid.width_ms
            self._starts = np.flatnonzero(np.append(True, indices[1:] != indices[:-1])[: len(t)])
            self._ends = np.append(self._starts[1:], len(t))[: len(self._starts)]
            self.t = grid.t0_ms + indices[self._starts] * grid.width_ms
            return
        edges = grid.t0_ms + grid.width_ms * np.arange(grid.count + 1)
        starts = np.searchsorted(t, edges, side="left")
        occupied = np.flatnonzero(starts[1:] > starts[:-1])
        self.t = edges[occupied]
        self._starts, self._ends = starts[occupied], starts[occupied + 1]

    def reduce(self, values: Floats) -> Buckets:
        """Return the buckets of one series. `values` has the length of the times; NaN is a gap."""
        values = values[self._within]
        if not len(self.t):
            empty = np.empty(0)
            return Buckets(self.t, np.empty(0, np.int64), empty, empty, empty, empty)
        present = ~np.isnan(values)
        if present.all():
            return self._reduce_without_gaps(values)
        starts = self._starts
        n = np.add.reduceat(present.astype(np.int64), starts)
        low = np.fmin.reduceat(values, starts)
        high = np.fmax.reduceat(values, starts)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = np.add.reduceat(np.where(present, values, 0.0), starts) / n
        last = _newest(values, present, n, starts)
        return Buckets(self.t, n, low, high, _clamp(mean, low, high), last)

    def _reduce_without_gaps(self, values: Floats) -> Buckets:
        """Fast path for a series without gaps: a third of the time."""
        starts, ends = self._starts, self._ends
        n = (ends - starts).astype(np.int64)
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.add.reduceat(values, starts) / n
        return Buckets(self.t, n, low, high, _clamp(mean, low, high), values[ends - 1])


def combine(parts: Sequence[Buckets]) -> Buckets:
    """Merge buckets of the same grid.

    Args:
        parts: disjoint parts of one series. If their times interleave, `last` is taken from the later part.
    """
    t = np.concatenate([part.t for part in parts])
    order = np.argsort(t, kind="stable")
    t = t[order]
    starts = np.flatnonzero(np.append(True, t[1:] != t[:-1])) if len(t) else np.empty(0, np.int64)
    if len(starts) == len(t):
        return Buckets(t, *(np.concatenate([getattr(p, name) for p in parts])[order] for name in _COLUMNS))
    counts, lows, highs, means, lasts = (
        np.concatenate([getattr(part, name) for part in parts])[order] for name in _COLUMNS
    )
    n = np.add.reduceat(counts, starts)
    low, high = np.fmin.reduceat(lows, starts), np.fmax.reduceat(highs, starts)
    # Weighting before adding cannot overflow if the means themselves do not.
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = counts / np.repeat(n, np.diff(np.append(starts, len(t))))
        mean = np.add.reduceat(np.where(counts > 0, means * weights, 0.0), starts)
    mean[n == 0] = np.nan
    present = counts > 0
    return Buckets(t[starts], n, low, high, _clamp(mean, low, high), _newest(lasts, present, n, starts))


_COLUMNS = ("n", "min", "max", "mean", "last")


def _newest(values: Floats, present: NDArray[np.bool_], n: Integers, starts: NDArray[np.intp]) -> Floats:
    """Return the last value in each bucket; NaN if it has none."""
    newest = np.maximum.reduceat(np.where(present, np.arange(len(values)), -1), starts)
    return np.where(n > 0, values[newest], np.nan)


def _clamp(mean: Floats, low: Floats, high: Floats) -> Floats:
    """Clamp the mean to the range of its values: summation rounds, and may overflow."""
    return np.minimum(np.maximum(mean, low), high)
