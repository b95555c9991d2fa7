"""The values of one series in memory, over time or steps.

A series grows at the end and keeps a summary of every 64 values, so a chart of a whole day is drawn from a
few thousand numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

BLOCK = 64
GAP = 5.0
"""A gap between two values, in usual distances, from which a series is interrupted."""
_MAX_OPENED = 64


class Elements(NamedTuple):
    """Values, or blocks of values, from left to right, as arrays of one length.

    `is_cut` says whether the line is interrupted before an element.
    """

    x: Any
    first: Any
    last: Any
    low: Any
    high: Any
    is_cut: Any


class SeriesColumn:
    """A series that grows. Its x-values are ascending: what is added out of order is sorted in.

    Args:
        x, y: the first values.

    Example:
        >>> series = SeriesColumn([0, 1000], [1.0, 2.0])
        >>> series.extend([2000], [5.0])
        >>> series.count, series.value_range(0, 1500)
        (3, (1.0, 2.0))
    """

    __slots__ = ("_blocks", "_x", "_y", "count")

    def __init__(self, x: Any = (), y: Any = ()) -> None:
        self._x, self._y = np.empty(BLOCK), np.empty(BLOCK)
        self._blocks = np.empty(
            (0, 5)
        )  # first x, lowest, highest, widest and usual distance of each full block
        self.count = 0
        self.extend(x, y)

    @property
    def x(self) -> Any:
        """Times in ms or steps."""
        return self._x[: self.count]

    @property
    def y(self) -> Any:
        """The values."""
        return self._y[: self.count]

    def snapshot(self) -> SeriesColumn:
        """Return the series as it is now, safe from another thread that adds to it. Copies nothing."""
        same = SeriesColumn()
        same._x, same._y, same._blocks, same.count = self._x, self._y, self._blocks, self.count
        return same

    def shift(self, by: float) -> SeriesColumn:
        """Return the series with all x moved."""
        return SeriesColumn(self.x + by, self.y) if by else self

    def first(self, count: int) -> SeriesColumn:
        """Return the first values. Copies nothing."""
        same = self.snapshot()
        same.count = min(count, self.count)
        same._blocks = self._blocks[: same.count // BLOCK]
        return same

    def count_until(self, x: float) -> int:
        """Return how many values are up to an x."""
        return int(np.searchsorted(self.x, x, side="right"))

    @property
    def extent(self) -> tuple[float, float]:
        """The first and the last x. There must be values."""
        return float(self._x[0]), float(self._x[self.count - 1])

    @property
    def newest(self) -> float | None:
        """The last value."""
        return float(self._y[self.count - 1]) if self.count else None

    def extend(self, x: Any, y: Any) -> None:
        """Add values. Arrays that were returned before do not change."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if not len(x):
            return
        if (np.diff(x) < 0).any() or (self.count and x[0] < self._x[self.count - 1]):
            x, y = np.concatenate([self.x, x]), np.concatenate([self.y, y])
            order = np.argsort(x, kind="stable")
            self.replace(x[order], y[order])
            return
        needed = self.count + len(x)
        if needed > len(self._x):
            room = max(needed, 2 * len(self._x))
            self._x, self._y = (
                np.concatenate([old[: self.count], np.empty(room - self.count)]) for old in (self._x, self._y)
            )
        self._x[self.count : needed], self._y[self.count : needed] = x, y
        self.count = needed
        self._summarise()

    def replace(self, x: Any, y: Any) -> None:
        """Set all values."""
        self._x, self._y = np.empty(BLOCK), np.empty(BLOCK)
        self._blocks, self.count = np.empty((0, 5)), 0
        self.extend(x, y)

    def _summarise(self) -> None:
        done, full = len(self._blocks), self.count // BLOCK
        if done == full:
            return
        x = self._x[done * BLOCK : full * BLOCK].reshape(-1, BLOCK)
        y = self._y[done * BLOCK : full * BLOCK].reshape(-1, BLOCK)
        steps = np.diff(x, axis=1)
        finite = np.where(np.isfinite(y), y, np.nan)
        low, high = np.fmin.reduce(finite, axis=1), np.fmax.reduce(finite, axis=1)
        # A block with a gap is as one with an endless step: it is never drawn as a whole.
        widest = np.where(np.isnan(finite).any(axis=1), np.inf, steps.max(axis=1))
        new = np.column_stack([x[:, 0], low, high, widest, np.median(steps, axis=1)])
        self._blocks = np.concatenate([self._blocks, new])

    def _slice(self, x_low: float, x_high: float) -> tuple[int, int]:
        first = int(np.searchsorted(self.x, x_low, side="left"))
        return first, int(np.searchsorted(self.x, x_high, side="right"))

    def value_range(self, x_low: float, x_high: float, log: bool = False) -> tuple[float, float] | None:
        """Return the lowest and highest finite value in a range of x; of a log scale, the positive ones."""
        first, last = self._slice(x_low, x_high)
        start, end = -(-first // BLOCK), last // BLOCK
        if start >= end or log:
            parts = [self._y[first:last]]
        else:
            blocks = self._blocks[start:end]
            parts = [self._y[first : start * BLOCK], blocks[:, 1], blocks[:, 2], self._y[end * BLOCK : last]]
        values = np.concatenate(parts)
        values = values[np.isfinite(values) & ((values > 0.0) | (not log))]
        return (float(values.min()), float(values.max())) if len(values) else None

    def nearest(self, x: float) -> tuple[float, float] | None:
        """Return the x and y of the value that is closest to an x; None without values."""
        index = self.nearest_index(x)
        return None if index is None else (float(self._x[index]), float(self._y[index]))

    def nearest_index(self, x: float) -> int | None:
        """Return the index of the value that is closest to an x; None without values."""
        right = int(np.searchsorted(self.x, x))
        around = [index for index in (right - 1, right) if 0 <= index < self.count]
        return min(around, key=lambda index: float(abs(self._x[index] - x)), default=None)

    def elements(self, x_low: float, x_high: float, most: int, find_gaps: bool, log: bool) -> Elements:
        """Return the values of a range of x, or blocks of them if there are more than `most`.

        Args:
            find_gaps: the line is also interrupted where values are missing for longer than usual.
            log: values that are not positive are gaps.
        """
        first, last = self._slice(x_low, x_high)
        start, end = -(-first // BLOCK), last // BLOCK
        if last - first <= most or end - start < most // 2:
            return self._values(first, last, find_gaps, log, None)
        usual = float(np.median(self._blocks[start:end, 4]))
        blocks = self._blocks[start:end]
        is_opened = ~np.isfinite(blocks[:, 1]) | np.isinf(blocks[:, 3])
        if find_gaps:
            is_opened |= blocks[:, 3] > GAP * usual
        if log:
            is_opened |= blocks[:, 1] <= 0.0
        opened = np.flatnonzero(is_opened)
        if len(opened) > _MAX_OPENED:
            return self._values(first, last, find_gaps, log, usual)
        pieces, at = [self._values(first, start * BLOCK, find_gaps, log, usual)], start
        for index in [*opened.tolist(), end - start]:
            pieces.append(self._whole_blocks(at, start + index, find_gaps, usual))
            at = start + index + 1
            if index < end - start:
                pieces.append(self._values((at - 1) * BLOCK, at * BLOCK, find_gaps, log, usual))
        pieces.append(self._values(end * BLOCK, last, find_gaps, log, usual))
        return Elements(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))

    def _values(self, first: int, last: int, find_gaps: bool, log: bool, usual: float | None) -> Elements:
        x, y = self._x[first:last], self._y[first:last]
        y = np.where(np.isfinite(y) & ((y > 0.0) | (not log)), y, np.nan)
        return Elements(x, y, y, y, y, self._cuts(x, x, first, find_gaps, usual))

    def _whole_blocks(self, start: int, end: int, find_gaps: bool, usual: float) -> Elements:
        first, last = (
            self._y[start * BLOCK : end * BLOCK : BLOCK],
            self._y[start * BLOCK + BLOCK - 1 : end * BLOCK : BLOCK],
        )
        x_last = self._x[start * BLOCK + BLOCK - 1 : end * BLOCK : BLOCK]
        x, low, high = self._blocks[start:end, :3].T
        return Elements(x, first, last, low, high, self._cuts(x, x_last, start * BLOCK, find_gaps, usual))

    def _cuts(self, x: Any, x_last: Any, first: int, find_gaps: bool, usual: float | None) -> Any:
        """Return whether the distance before each element is a gap."""
        if not find_gaps or not len(x):
            return np.zeros(len(x), bool)
        before = self._x[first - 1] if first else x[0]
        steps = x - np.concatenate([[before], x_last[:-1]])
        if usual is None:
            usual = float(np.median(steps[1:])) if len(steps) > 2 else np.inf
        return steps > GAP * usual


def over_metric(values: SeriesColumn, axis: SeriesColumn) -> SeriesColumn:
    """Return the values over those of another metric that the same process logged at the same steps.

    Values at other steps are left out, as on the page.

    Args:
        values, axis: the values of the two metrics over steps.

    Example:
        >>> loss, epoch = SeriesColumn([10, 15, 20], [3.0, 9.0, 1.0]), SeriesColumn([10, 20], [1.0, 2.0])
        >>> over_metric(loss, epoch).x, over_metric(loss, epoch).y
        (array([1., 2.]), array([3., 1.]))
    """
    if not (values.count and axis.count):
        return SeriesColumn()
    indexes = np.searchsorted(axis.x, values.x, side="right") - 1  # of one step the last
    x = axis.y[np.maximum(indexes, 0)]
    is_known = (indexes >= 0) & (axis.x[np.maximum(indexes, 0)] == values.x) & np.isfinite(x)
    return SeriesColumn(x[is_known], values.y[is_known])
