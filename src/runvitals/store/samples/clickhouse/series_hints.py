"""Rows of the table `series`: now and then, a time at which each series had a value.

Every batch would make as many rows as it has columns. So this process remembers what it wrote, and writes
again once a series is `HINTS_APART_MS` further.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.store.samples.clickhouse.connection import Rows
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.clickhouse.schema import SERIES
from runvitals.store.samples.interface import SampleBatch

HINTS_APART_MS = 120_000
_MAX_COLUMN_SETS = 50_000
_NEVER = -1

_Columns = tuple[int, tuple[int, ...]]
"""A run, and metrics that it sends together."""


class SeriesHints:
    """The times that were written. For one thread at a time."""

    def __init__(self) -> None:
        self._newest: dict[_Columns, Integers] = {}

    def rows(self, accepted: Sequence[AcceptedBatch]) -> Rows:
        """Return the rows to write; `written` must be called with them after that."""
        newest: dict[tuple[int, int], int] = {}
        for _, batch in accepted:
            if not batch.values.size:
                continue
            before = self._newest.get((batch.run, batch.metrics))
            times = _newest_times(batch)
            due = (
                times > _NEVER
                if before is None
                else times > np.where(before < 0, -1, before + HINTS_APART_MS)
            )
            for column in np.flatnonzero(due).tolist():
                series = batch.run, batch.metrics[column]
                newest[series] = max(newest.get(series, _NEVER), int(times[column]))
        listed = [(run, metric, t) for (run, metric), t in sorted(newest.items())]
        return np.array(listed, SERIES)

    def note_written(self, accepted: Sequence[AcceptedBatch], rows: Rows) -> None:
        """Note that the rows of these batches were written."""
        times = {(run, metric): t for run, metric, t in rows.tolist()}
        if not times:
            return
        for columns in {(batch.run, batch.metrics) for _, batch in accepted}:
            run, metrics = columns
            now = np.array([times.get((run, metric), _NEVER) for metric in metrics], np.int64)
            if (now > _NEVER).any():
                before = self._newest.pop(columns, None)
                self._newest[columns] = now if before is None else np.maximum(before, now)
        while len(self._newest) > _MAX_COLUMN_SETS:
            self._newest.pop(next(iter(self._newest)))

    def forget(self, runs: Collection[int]) -> None:
        """Write the series of these runs again: they were deleted."""
        gone = frozenset(runs)
        self._newest = {columns: times for columns, times in self._newest.items() if columns[0] not in gone}


def _newest_times(batch: SampleBatch) -> Integers:
    """For each column the newest time with a value; -1 if there is none."""
    t = batch.t[:, np.newaxis]
    times: Integers = np.where(np.isnan(batch.values), _NEVER, t).max(axis=0)
    return times
