"""Statistics of many series over sliding windows, all updated at once.

A window is divided into buckets. A bucket keeps the sum, number, minimum and maximum of its values, so a
value costs the same however long the window is. The window therefore moves in steps of a bucket. It gives no
result until its values reach back over at least half of it.

A window over the last points of a series is one whose clock counts its values: each point is a bucket of its
own, and there is no result until all are there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers

BUCKETS: Final = 12
CHANGE_BUCKETS: Final = 4
"""Buckets of the window of a change; its baseline has as many more as it is longer."""
MAX_CHANGE_BUCKETS: Final = 64
LAST, MEAN, MIN, MAX, CHANGE, RELATIVE, FRACTION, DEVIATIONS = range(8)
"""From `CHANGE` on, a window is compared with what was before it: the change of its mean, in percent of the
mean before, as a part of it, and in standard deviations of what was before."""
_NO_BUCKET: Final = -(2**62)


class SeriesWindows:
    """The windows of a number of series, of up to `buckets` buckets each.

    Args:
        statistics: LAST, MEAN … of each series.
        widths: of a bucket of each series, ms.
        recent: how many buckets the window of each series has.
        used: the same with the baseline.
        reach: how many buckets back the oldest value must be at least, for a result.
    """

    def __init__(
        self,
        statistics: Integers,
        widths: Integers,
        recent: Integers,
        used: Integers,
        reach: Integers,
        buckets: int,
    ) -> None:
        size = len(statistics)
        self._buckets = buckets
        self._statistics = statistics
        self._widths = widths
        self._recent = recent
        self._used = used
        self._reach = reach
        self._present = frozenset(np.unique(statistics).tolist())
        self._newest = np.full(size, _NO_BUCKET)
        self._sums = np.zeros((size, buckets))
        self._counts = np.zeros((size, buckets))
        self._extremes = np.full((size, buckets), np.nan)

    def add(self, which: Integers, times: Integers, values: Floats) -> Floats:
        """Add one value to each of some series, none twice; returns their statistics, NaN without a result.

        Values must not be older than the newest of their series.
        """
        number = times // self._widths[which]
        self._advance(which, number)
        at = number % self._buckets
        self._sums[which, at] += values
        self._counts[which, at] += 1
        statistics = self._statistics[which]
        extremes = self._extremes[which, at]
        extreme = np.where(statistics == MIN, np.fmin(extremes, values), np.fmax(extremes, values))
        self._extremes[which, at] = extreme
        return self._results(which, number)

    def next_points(self, which: Integers) -> Integers:
        """Return the times of the next values of some series, where a series counts its values."""
        numbers: Integers = np.maximum(self._newest[which] + 1, 0)
        return numbers

    def recent_mean(self, series: int) -> float:
        """Return the mean of the window of a series."""
        behind = (self._newest[series] - np.arange(self._buckets)) % self._buckets < self._recent[series]
        return float(self._sums[series, behind].sum() / self._counts[series, behind].sum())

    def take_over(self, which: Integers, before: SeriesWindows, its: Integers) -> None:
        """Copy windows of before."""
        for mine, old in (
            (self._newest, before._newest),
            (self._sums, before._sums),
            (self._counts, before._counts),
            (self._extremes, before._extremes),
        ):
            mine[which] = old[its]

    def _advance(self, which: Integers, number: Integers) -> None:
        """Empty the buckets between the newest and this one."""
        steps = np.minimum(number - self._newest[which], self._buckets)
        moved = np.nonzero(steps > 0)[0]
        if not len(moved):
            return
        rows, newest = which[moved], number[moved]
        behind = (newest[:, None] - np.arange(self._buckets)) % self._buckets
        emptied = behind < steps[moved][:, None]
        for array, empty in ((self._sums, 0.0), (self._counts, 0.0), (self._extremes, np.nan)):
            array[rows] = np.where(emptied, empty, array[rows])
        self._newest[rows] = newest

    def _results(self, which: Integers, number: Integers) -> Floats:
        behind = (number[:, None] - np.arange(self._buckets)) % self._buckets
        counts = self._counts[which]
        results = np.full(len(which), np.nan)
        if self._present & {MEAN, MIN, MAX}:
            self._of_windows(which, behind, counts, results)
        if max(self._present) >= CHANGE:
            self._changes(which, behind, counts, results)
        return results

    def _of_windows(self, which: Integers, behind: Integers, counts: Floats, results: Floats) -> None:
        """Results of series of whose window there is a mean, a minimum or a maximum."""
        recent, statistics = self._recent[which], self._statistics[which]
        in_window = behind < recent[:, None]
        filled = (counts > 0) & in_window
        reaches_back = (filled & (behind >= self._reach[which][:, None])).any(axis=1)
        means = np.nonzero((statistics == MEAN) & reaches_back)[0]
        if len(means):
            inside = in_window[means]
            total = np.where(inside, self._sums[which[means]], 0.0).sum(axis=1)
            results[means] = total / np.where(inside, counts[means], 0.0).sum(axis=1)
        for statistic, reduce in ((MIN, np.fmin), (MAX, np.fmax)):
            rows = np.nonzero((statistics == statistic) & reaches_back)[0]
            if len(rows):
                inside_values = np.where(in_window[rows], self._extremes[which[rows]], np.nan)
                results[rows] = reduce.reduce(inside_values, axis=1)

    def _changes(self, which: Integers, behind: Integers, counts: Floats, results: Floats) -> None:
        """Results of series that compare their window with the time before it."""
        statistics = self._statistics[which]
        rows = np.nonzero(statistics >= CHANGE)[0]
        if not len(rows):
            return
        sums, count, back = self._sums[which[rows]], counts[rows], behind[rows]
        recent, used = self._recent[which[rows]][:, None], self._used[which[rows]][:, None]
        now, before = back < recent, (back >= recent) & (back < used)
        reach = self._reach[which[rows]][:, None]
        enough = ((count > 0) & (back >= reach) & before).any(axis=1) & ((count > 0) & now).any(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(now, sums, 0).sum(axis=1) / np.where(now, count, 0).sum(axis=1)
            base = np.where(before, sums, 0).sum(axis=1) / np.where(before, count, 0).sum(axis=1)
            change = mean - base
            result, kind = change.copy(), statistics[rows]
            if self._present & {RELATIVE, FRACTION}:
                level = np.where(base != 0, np.abs(base), np.nan)
                result = np.where(kind == RELATIVE, 100 * change / level, result)
                result = np.where(kind == FRACTION, change / level, result)
            at = np.nonzero(kind == DEVIATIONS)[0]
            if len(at):
                result[at] = change[at] / _deviations(sums[at], before[at], base[at])
        results[rows] = np.where(enough, result, np.nan)


def _deviations(values: Floats, chosen: NDArray[np.bool_], means: Floats) -> Floats:
    """Return the standard deviation of the chosen values of each row; NaN where they are all the same."""
    squares = np.where(chosen, (values - means[:, None]) ** 2, 0).sum(axis=1)
    least = np.where(chosen, values, np.inf).min(axis=1)
    greatest = np.where(chosen, values, -np.inf).max(axis=1)
    return np.where(greatest > least, np.sqrt(squares / chosen.sum(axis=1)), np.nan)
