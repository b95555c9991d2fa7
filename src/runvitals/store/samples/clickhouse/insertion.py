"""Stores batches in ClickHouse, each once.

Several servers may get the same batch at the same time: both may find that it is not stored yet, and both
store it. That changes nothing: each took its version before it looked, so whatever was written later than the
first of them has a higher version than the second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence

import numpy as np

from runvitals.store.samples.clickhouse import rows
from runvitals.store.samples.clickhouse.connection import ClickHouse, Rows
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.clickhouse.series_hints import SeriesHints
from runvitals.store.samples.interface import SampleBatch, StoreUnavailable

Identity = tuple[int, int, int]
"""Run, writer, seq."""
_IDENTITY = np.dtype([("run", "<i8"), ("writer", "<i8"), ("seq", "<i8")])


def identity(batch: SampleBatch) -> Identity:
    """Return what tells a batch from every other."""
    return batch.run, batch.writer, batch.seq


class Insertion:
    """Writes to the tables of samples. One thread at a time; the others wait."""

    def __init__(self, clickhouse: ClickHouse) -> None:
        self._clickhouse = clickhouse
        self._hints = SeriesHints()
        self._lock = threading.Lock()
        self._until_s: float | None = None

    def store(self, accepted: Sequence[AcceptedBatch], within_s: float | None = None) -> tuple[bool, ...]:
        """Store batches durably. Returns, for each of them, whether it was new.

        Args:
            within_s: give up after this time; None: as late as any request to ClickHouse.

        Raises:
            StoreError: perhaps some are stored, and perhaps in part. Store them again with the same versions.
        """
        until_s = None if within_s is None else time.monotonic() + within_s
        if not self._lock.acquire(timeout=-1 if within_s is None else within_s):
            raise StoreUnavailable("ClickHouse takes too long to store earlier batches")
        try:
            self._until_s = until_s
            stored = self._find_stored([identity(batch) for _, batch in accepted])
            fresh: list[AcceptedBatch] = []
            flags = []
            for entry in accepted:
                is_new = identity(entry.batch) not in stored
                flags.append(is_new)
                if is_new:
                    stored.add(identity(entry.batch))
                    fresh.append(entry)
            if fresh:
                self._insert(fresh)
        finally:
            self._lock.release()
        return tuple(flags)

    def _left_s(self) -> float | None:
        """Return the seconds that the next request may take."""
        return None if self._until_s is None else max(0.001, self._until_s - time.monotonic())

    def forget(self, runs: Collection[int]) -> None:
        """Runs were deleted."""
        with self._lock:
            self._hints.forget(runs)

    def _find_stored(self, identities: Sequence[Identity]) -> set[Identity]:
        """Return the batches among these that are stored."""
        listed = ",".join(f"({run},{writer},{seq})" for run, writer, seq in identities)
        sql = f"SELECT run, writer, seq FROM batches WHERE (run, writer, seq) IN ({listed})"
        return set(self._clickhouse.select(sql, _IDENTITY, self._left_s()).tolist())

    def _insert(self, fresh: Sequence[AcceptedBatch]) -> None:
        # The extents first: a run without samples at its last time is found, and nothing is read. The table
        # `batches` last: what it lists is complete.
        extents = rows.extent_rows(fresh)
        if len(extents):
            self._put("extents", extents)
        hints = self._hints.rows(fresh)
        for part in rows.by_months(rows.sample_rows(fresh)):
            self._put("samples", part)
        if len(hints):
            self._put("series", hints)
        self._put("batches", rows.batch_rows(fresh))
        self._hints.note_written(fresh, hints)

    def _put(self, table: str, table_rows: Rows) -> None:
        self._clickhouse.insert(table, table_rows, timeout_s=self._left_s())
