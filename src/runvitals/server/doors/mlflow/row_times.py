"""The times under which logged rows of a run are stored.

The store identifies a row by its time, MLflow by its timestamp and step. Rows of different steps that have
the same timestamp get the milliseconds after it, and their timestamp is stored beside them. A row that is
sent again gets the same time again, so that it replaces itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from runvitals.buckets import Floats, Integers

KEPT: Final = 50_000
"""Rows of a run whose times are remembered; older ones are read from the store when they are needed."""


class StoredRows(NamedTuple):
    """Rows in the store: their times, ascending, with the timestamps and steps that they were sent with."""

    t: Integers
    timestamps: Floats
    steps: Floats


ReadRows = Callable[[int, int], StoredRows]
"""Reads the rows from one time to another, both included."""


class RowTimes:
    """The times of one run's rows.

    Args:
        read: reads stored rows.
        newest_ms: the time of the newest row in the store; -1 if it has none.
        default_ms: near which rows are stored whose timestamp the store does not accept.

    Example:
        >>> times = RowTimes(read, -1, 1_760_000_000_000)
        >>> times.assign([(1_760_000_000_000, 0), (1_760_000_000_000, 1)], 0, 2**62)
        [1760000000000, 1760000000001]
    """

    def __init__(self, read: ReadRows, newest_ms: int, default_ms: int) -> None:
        self._read = read
        self._default_ms = default_ms
        self._times: dict[tuple[int, int], int] = {}
        self._after: dict[int, int] = {}
        self._floor = newest_ms
        self._loaded: _SortedRows | None = None
        self._loaded_from = newest_ms + 1

    def needs_store(self, rows: Sequence[tuple[int, int]], oldest_ms: int, newest_ms: int) -> bool:
        """Whether `assign` reads the store for these rows."""
        return any(
            row not in self._times and self._base(row[0], oldest_ms, newest_ms) < self._loaded_from
            for row in rows
        )

    def assign(self, rows: Sequence[tuple[int, int]], oldest_ms: int, newest_ms: int) -> list[int]:
        """The times of rows, given by timestamp and step.

        Args:
            oldest_ms, newest_ms: the times that the store accepts.
        """
        times = self._times
        found = [
            times[row] if row in times else self._assign(row, self._base(row[0], oldest_ms, newest_ms))
            for row in rows
        ]
        if len(times) > KEPT:
            self._forget()
        return found

    def _base(self, timestamp: int, oldest_ms: int, newest_ms: int) -> int:
        return timestamp if oldest_ms <= timestamp <= newest_ms else self._default_ms

    def _assign(self, row: tuple[int, int], base: int) -> int:
        t = base
        if base <= self._floor:
            rows = self._load(base)
            stored = rows.find(row)
            if stored is not None:
                return stored
            if rows.has(base):
                t = self._floor + 1  # between stored rows there may be no free time near
        t = self._free(t)
        self._times[row] = t
        self._after[t] = t + 1
        return t

    def _free(self, t: int) -> int:
        """The first free time from this one on. Each taken time knows one behind it, which is brought up to
        date whenever it is passed, so that many rows at one time stay fast."""
        passed = []
        while t in self._after:
            passed.append(t)
            t = self._after[t]
        for before in passed:
            self._after[before] = t
        return t

    def _load(self, from_ms: int) -> _SortedRows:
        """The stored rows from a time on."""
        if self._loaded is None or from_ms < self._loaded_from:
            self._loaded = _SortedRows(self._read(from_ms, self._floor))
            self._loaded_from = from_ms
        return self._loaded

    def _forget(self) -> None:
        """Forget all rows but the newest ones. What is forgotten is read from the store again."""
        by_time = sorted(self._times.items(), key=lambda item: item[1])
        half = len(by_time) // 2
        self._floor = max(self._floor, by_time[half - 1][1])
        self._times = dict(by_time[half:])
        self._after = {t: t + 1 for t in self._times.values()}
        self._loaded, self._loaded_from = None, self._floor + 1


class _SortedRows:
    """Stored rows, to look up by their time, or by timestamp and step."""

    def __init__(self, rows: StoredRows) -> None:
        order = np.lexsort((rows.steps, rows.timestamps))
        self._all = rows.t
        self._t, self._timestamps, self._steps = rows.t[order], rows.timestamps[order], rows.steps[order]

    def find(self, row: tuple[int, int]) -> int | None:
        """The time under which a row is stored; None if it is not."""
        first, end = (int(np.searchsorted(self._timestamps, row[0], side)) for side in ("left", "right"))
        place = first + int(np.searchsorted(self._steps[first:end], row[1]))
        return int(self._t[place]) if place < end and self._steps[place] == row[1] else None

    def has(self, t: int) -> bool:
        """Whether a row is stored at a time."""
        place = int(np.searchsorted(self._all, t))
        return place < len(self._all) and int(self._all[place]) == t
