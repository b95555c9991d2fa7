"""Sets of times as sorted lists of disjoint intervals, and how a device's time is shared by runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from runvitals.base.buckets import Floats, Integers

Interval = tuple[int, int]
"""From the first time until before the second, ms UTC."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The times in any of some intervals.

    Example:
        >>> union([(5, 9), (1, 3), (3, 4), (8, 10)])
        [(1, 4), (5, 10)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif start < end:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    """How long disjoint intervals are together."""
    return sum(end - start for start, end in intervals)


def overlap(a: Sequence[Interval], b: Sequence[Interval]) -> bool:
    """Return whether two sorted lists of disjoint intervals have a time in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][0] < b[j][1] and b[j][0] < a[i][1]:
            return True
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return False


class Share:
    """How much of a device's time belongs to one of the runs that use it: 1/k while k runs do.

    Args:
        users: the covered time of each of its users, the run itself included; each sorted and disjoint.
        weight: the run's part of the time, by the number of users.

    Example:
        >>> Share([[(0, 10)], [(4, 10)]]).between(np.array([0, 2]), np.array([4, 8]))
        array([4., 4.])
    """

    def __init__(
        self, users: Sequence[Sequence[Interval]], weight: Callable[[int], float] = lambda count: 1 / count
    ) -> None:
        changes: dict[int, int] = {}
        for intervals in users:
            for start, end in intervals:
                changes[start] = changes.get(start, 0) + 1
                changes[end] = changes.get(end, 0) - 1
        self._t = np.array(sorted(changes), np.int64)
        counts = np.cumsum([changes[t] for t in sorted(changes)]).tolist()
        weights = np.array([weight(max(count, 1)) for count in counts])
        self._alone = weight(1)
        spans = np.diff(self._t)
        self._sums = np.concatenate(([0.0], np.cumsum(spans * weights[: len(spans)])))

    def between(self, starts: Integers, ends: Integers) -> Floats:
        """The share of each interval, ms."""
        if not len(self._t):
            return (ends - starts).astype(np.float64) * self._alone
        return self._at(ends) - self._at(starts)

    def _at(self, times: Integers) -> Floats:
        # Outside of all intervals the time is nobody else's.
        inside = np.clip(times, self._t[0], self._t[-1])
        sums: Floats = np.interp(inside, self._t, self._sums) + (times - inside) * self._alone
        return sums
