"""Stores batches in ClickHouse, each once.

Several servers may get the same batch at the same time: both may find that it is not stored yet, and both
store it. That changes nothing: each took its version before it looked, so whatever was written later than the
first of them has a higher version than the second.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import numpy as np

from runvitals.store.samples.clickhouse import rows
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.clickhouse.series_hints import SeriesHints
from runvitals.store.samples.interface import SampleBatch

Identity = tuple[int, int, int]
"""Run, writer, seq."""
_IDENTITY = np.dtype([("run", "<i8"), ("writer", "<i8"), ("seq", "<i8")])


def identity(batch: SampleBatch) -> Identity:
    return batch.run, batch.writer, batch.seq


class Insertion:
    """Writes to the tables of samples. One thread at a time; the others wait."""

    def __init__(self, clickhouse: ClickHouse) -> None:
        self._clickhouse = clickhouse
        self._hints = SeriesHints()
        self._lock = threading.Lock()

    def store(self, accepted: Sequence[AcceptedBatch]) -> tuple[bool, ...]:
        """Store batches durably. Returns, for each of them, whether it was new.

        Raises:
            StoreError: perhaps some are stored, and perhaps in part. Store them again with the same versions.
        """
        with self._lock:
            known = self._stored([identity(batch) for _, batch in accepted])
            fresh: list[AcceptedBatch] = []
            flags = []
            for one in accepted:
                is_new = identity(one.batch) not in known
                flags.append(is_new)
                if is_new:
                    known.add(identity(one.batch))
                    fresh.append(one)
            if fresh:
                self._insert(fresh)
        return tuple(flags)

    def forget(self, runs: Collection[int]) -> None:
        """Runs were deleted."""
        with self._lock:
            self._hints.forget(runs)

    def _stored(self, identities: Sequence[Identity]) -> set[Identity]:
        """Those of the batches that are stored."""
        listed = ",".join(f"({run},{writer},{seq})" for run, writer, seq in identities)
        sql = f"SELECT run, writer, seq FROM batches WHERE (run, writer, seq) IN ({listed})"
        return set(self._clickhouse.select(sql, _IDENTITY).tolist())

    def _insert(self, fresh: Sequence[AcceptedBatch]) -> None:
        # The extents first: a run without samples at its last time is found, and nothing is read. The table
        # `batches` last: what it lists is complete.
        extents = rows.extent_rows(fresh)
        if len(extents):
            self._clickhouse.insert("extents", extents)
        hints = self._hints.rows(fresh)
        for part in rows.by_months(rows.sample_rows(fresh)):
            self._clickhouse.insert("samples", part)
        if len(hints):
            self._clickhouse.insert("series", hints)
        self._clickhouse.insert("batches", rows.batch_rows(fresh))
        self._hints.written(fresh, hints)
