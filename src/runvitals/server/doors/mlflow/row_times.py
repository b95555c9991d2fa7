"""The times under which logged rows of a run are stored.

The store identifies a row by its time, MLflow by its timestamp and step. Rows of different steps that have
the same timestamp get the milliseconds after it, and their timestamp is stored beside them. A row that is
sent again gets the same time again, so that it replaces itself. Several values of a metric with the same
timestamp and step are in rows of their own, numbered by `repeats` in the order of their times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from runvitals.base.buckets import Floats, Integers

KEPT: Final = 50_000
"""Rows of a run whose times are remembered; older ones are read from the store when they are needed."""


class StoredRows(NamedTuple):
    """Rows in the store: their times, ascending, with the timestamps and steps that they were sent with."""

    t: Integers
    timestamps: Floats | Integers
    steps: Floats | Integers


Row = tuple[int, int, int]
"""Timestamp, step and repeat."""
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
        >>> times.assign(np.array([1_760_000_000_000] * 2), np.array([0, 1]), np.array([0, 0]), 0, 2**62)
        array([1760000000000, 1760000000001])
    """

    def __init__(self, read: ReadRows, newest_ms: int, default_ms: int) -> None:
        self._read = read
        self._default_ms = default_ms
        self._times: dict[Row, int] = {}
        self._after: dict[int, int] = {}
        self._floor = self._newest = newest_ms
        self._appended: deque[tuple[Integers, ...]] = deque()
        self._appended_rows = 0
        self._loaded: _SortedRows | None = None
        self._loaded_from = newest_ms + 1

    def follows(self, timestamps: Integers, oldest_ms: int, newest_ms: int) -> bool:
        """Return whether all rows are later than those known, as they are while a training logs.

        Else `times_of` and `assign` may read the store.
        """
        if not len(timestamps):
            return True
        first, last = int(timestamps.min()), int(timestamps.max())
        return first > self._newest and first >= oldest_ms and last <= newest_ms

    def times_of(self, timestamp: int, step: int, oldest_ms: int, newest_ms: int) -> list[int]:
        """Return the times of the known rows with this timestamp and step, in the order of their repeats."""
        self._index_appended()
        base = self._base(timestamp, oldest_ms, newest_ms)
        times = self._load(base).times_of(timestamp, step).tolist() if base <= self._floor else []
        while (timestamp, step, len(times)) in self._times:
            times.append(self._times[timestamp, step, len(times)])
        return times

    def assign(
        self, timestamps: Integers, steps: Integers, repeats: Integers, oldest_ms: int, newest_ms: int
    ) -> Integers:
        """Return the times of rows, in the order of timestamps.

        Args:
            oldest_ms, newest_ms: the times that the store accepts.
        """
        if self.follows(timestamps, oldest_ms, newest_ms):
            return self._append(timestamps, steps, repeats)
        self._index_appended()
        times = self._times
        assigned = [
            times[row] if row in times else self._assign(row, self._base(row[0], oldest_ms, newest_ms))
            for row in zip(timestamps.tolist(), steps.tolist(), repeats.tolist(), strict=True)
        ]
        if len(times) > KEPT:
            self._forget()
        return np.array(assigned, np.int64)

    def _append(self, timestamps: Integers, steps: Integers, repeats: Integers) -> Integers:
        """Assign times to rows that are later than those known: the next free one to each."""
        if not len(timestamps):
            return timestamps
        offsets = np.arange(len(timestamps))
        times: Integers = np.maximum.accumulate(timestamps - offsets) + offsets
        self._newest = int(times[-1])
        self._appended.append((times, timestamps, steps, repeats))
        self._appended_rows += len(times)
        while self._appended_rows > KEPT and len(self._appended) > 1:
            oldest = self._appended.popleft()
            self._appended_rows -= len(oldest[0])
            self._times, self._after = {}, {}  # earlier still
            self._floor = int(oldest[0][-1])
            self._loaded, self._loaded_from = None, self._floor + 1
        return times

    def _index_appended(self) -> None:
        """Prepare appended rows to be looked up one by one."""
        for t, *row in self._appended:
            times = t.tolist()
            rows = zip(*(column.tolist() for column in row), strict=True)
            self._times.update(zip(rows, times, strict=True))
            self._after.update((time, time + 1) for time in times)
        self._appended.clear()
        self._appended_rows = 0

    def _base(self, timestamp: int, oldest_ms: int, newest_ms: int) -> int:
        return timestamp if oldest_ms <= timestamp <= newest_ms else self._default_ms

    def _assign(self, row: Row, base: int) -> int:
        t = base
        if base <= self._floor:
            rows = self._load(base)
            stored = rows.find(row)
            if stored is not None:
                return stored
            if rows.has(base):
                t = self._floor + 1  # there may be no free time near between stored rows
        t = self._free(t)
        self._times[row] = t
        self._after[t] = t + 1
        self._newest = max(self._newest, t)
        return t

    def _free(self, t: int) -> int:
        """Return the first free time from this one on.

        Each taken time knows one behind it, which is brought up to date whenever it is passed, so that many
        rows at one time stay fast.
        """
        passed = []
        while t in self._after:
            passed.append(t)
            t = self._after[t]
        for before in passed:
            self._after[before] = t
        return t

    def _load(self, from_ms: int) -> _SortedRows:
        """Return the stored rows from a time on."""
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

    def find(self, row: Row) -> int | None:
        """Return the time under which a row is stored; None if it is not."""
        timestamp, step, repeat = row
        times = self.times_of(timestamp, step)
        return int(times[repeat]) if repeat < len(times) else None

    def times_of(self, timestamp: int, step: int) -> Integers:
        """Return the times of the rows with this timestamp and step."""
        first, end = (int(np.searchsorted(self._timestamps, timestamp, side)) for side in ("left", "right"))
        steps = self._steps[first:end]
        of_step = slice(*(first + int(np.searchsorted(steps, step, side)) for side in ("left", "right")))
        return self._t[of_step]

    def has(self, t: int) -> bool:
        """Return whether a row is stored at a time."""
        index = int(np.searchsorted(self._all, t))
        return index < len(self._all) and int(self._all[index]) == t
