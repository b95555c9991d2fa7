"""A sample store in ClickHouse, for any number of servers."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Grid
from runvitals.base.deadline import TooSlow
from runvitals.base.private_folders import make_private
from runvitals.store.samples.clickhouse import import_export, stored_ids
from runvitals.store.samples.clickhouse.address import ClickHouseAddress
from runvitals.store.samples.clickhouse.aggregate import aggregate
from runvitals.store.samples.clickhouse.commit_thread import ClickHouseCommits
from runvitals.store.samples.clickhouse.connection import PROMPT_S, ClickHouse
from runvitals.store.samples.clickhouse.insertion import Insertion
from runvitals.store.samples.clickhouse.preparation import Preparation
from runvitals.store.samples.clickhouse.reader import ClickHouseReader
from runvitals.store.samples.clickhouse.removal import Removal
from runvitals.store.samples.clickhouse.selection import id_list
from runvitals.store.samples.clickhouse.settings import ClickHouseSettings
from runvitals.store.samples.clickhouse.waiting_batches import NAME, WaitingBatches
from runvitals.store.samples.interface import (
    Capabilities,
    CommitAck,
    LatestSample,
    MetricAggregate,
    ReadResult,
    SampleBatch,
    SeriesBuckets,
    SeriesSamples,
    StoreError,
    StoreStats,
    StoreUnavailable,
)
from runvitals.store.samples.sqlite.aggregation_sums import AggregateQuery
from runvitals.store.samples.sqlite.folder_lock import FolderLock
from runvitals.store.samples.sqlite.log import Pairing

_COUNTED_ROWS = 1_000_000
"""With more, samples that were replaced and not merged yet are counted too."""
_NO_STATS = StoreStats(0, 0, 0, 0, 0, None)
_SIZE = np.dtype([("run", "<i8"), ("n", "<u8")])
_COUNT = np.dtype([("runs", "<u8"), ("samples", "<u8")])


class ClickHouseStore:
    """A sample store in a database of ClickHouse.

    Args:
        folder: on this machine, for batches that wait while ClickHouse cannot store them; created if missing.
            One process at a time.
        clock_us: the time now, µs UTC. If those of several servers differ, it may decide which of two writes
            at the same time of a series is the last.
        may_be_away: open the store also if ClickHouse cannot be reached. Nothing is accepted or read then
            before `pair_later` was called.

    Raises:
        StoreError: ClickHouse cannot be reached, its tables are of a later version, or the folder is in use.
    """

    def __init__(
        self,
        address: ClickHouseAddress,
        folder: str,
        settings: ClickHouseSettings | None = None,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        may_be_away: bool = False,
    ) -> None:
        settings = settings or ClickHouseSettings()
        self.address = address
        self.folder = os.path.abspath(folder)
        make_private(self.folder)
        self.clickhouse = ClickHouse(address, settings.timeout_s)
        self._unchecked = ClickHouse(address, settings.timeout_s)
        self._preparation = Preparation(self._unchecked, self.clickhouse, self._claim_waiting)
        with ExitStack() as opened:
            lock = FolderLock(self.folder)
            opened.callback(lock.close)
            opened.callback(self.clickhouse.close)
            opened.callback(self._unchecked.close)
            self._waiting = WaitingBatches(os.path.join(self.folder, NAME), settings.waiting_bytes)
            opened.callback(self._waiting.close)
            try:
                self._preparation.run()
            except StoreUnavailable as error:
                if not may_be_away:
                    raise
                self._preparation.wait(str(error))
            self._opened = opened.pop_all()
        self._insertion = Insertion(self.clickhouse)
        self._reader = ClickHouseReader(self.clickhouse, settings.raw_samples)
        self._removal = Removal(self.clickhouse, self._preparation)
        self._removing = threading.Lock()
        self._last_stats = _NO_STATS
        self._closed = False
        self._commits = ClickHouseCommits(
            self._preparation, self._insertion, self._waiting, settings, clock_us
        )
        self._commits.start()

    def _claim_waiting(self) -> None:
        store_id = self.store_id
        if store_id is not None:
            self._waiting.claim(store_id)

    def __enter__(self) -> ClickHouseStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capabilities(self) -> Capabilities:
        """The rules of the interface that this store guarantees."""
        fsync = self.is_prepared and self._preparation.features.fsync
        return Capabilities(
            durable_ack=fsync, exact_float64=True, read_after_write_ms=0, atomic_batches=False
        )

    # Pairing with a metadata store

    @property
    def is_prepared(self) -> bool:
        """Whether ClickHouse has been reached, so that the store can be paired."""
        return self._preparation.pending is None

    def check_prepared(self) -> None:
        """Raise StoreUnavailable until ClickHouse has been reached: the store cannot be paired before."""
        self._preparation.check_done()

    def pair_later(self, store_id: str | None, pair: Callable[[], None]) -> None:
        """Pair the store once ClickHouse can be reached. Until then batches wait on the disk.

        Args:
            store_id: the id that the metadata store shares with its sample store. None: it was never paired,
                so that ids may be wrong and nothing is accepted before.
            pair: raises `StoreError` if the two do not belong together. Nothing more is accepted then.

        Raises:
            StoreError: batches for another store wait on the disk.
        """
        if store_id is not None:
            self._waiting.claim(store_id)
        self._preparation.check_by(pair, accepts=store_id is not None)
        self._commits.try_again()

    @property
    def name(self) -> str:
        """The address without the password."""
        return str(self.address)

    @property
    def pairing(self) -> Pairing | None:
        """The pairing with a metadata store; None if there is none yet."""
        return stored_ids.pairing(self._unchecked)

    @property
    def store_id(self) -> str | None:
        """The id that the store shares with its metadata store."""
        pairing = self.pairing
        return None if pairing is None else pairing.id

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever stored."""
        return stored_ids.is_new(self._unchecked)

    def highest(self) -> tuple[int, int]:
        """Return the highest id of a run or writer, and of a metric, that was stored."""
        return stored_ids.highest(self._unchecked)

    def pair(self, pairing: Pairing) -> None:
        """Record the pairing with a metadata store."""
        fields = dict(zip(("id", "starts", "metadata_store"), pairing, strict=True))
        self._waiting.claim(pairing.id)
        self._unchecked.command(f"INSERT INTO pairing FORMAT JSONEachRow {json.dumps(fields)}")

    # Migration from and to other stores (see `store.samples.migration`)

    def runs(self) -> list[int]:
        """Return the ids of the runs with samples."""
        return import_export.runs(self.clickhouse)

    def days(self, run: int) -> list[int]:
        """Return the days on which a run has samples."""
        return import_export.days(self.clickhouse, run)

    def stored_batches(self, run: int) -> dict[int, list[tuple[int, int]]]:
        """Return the ranges of a run's batches that are stored, by writer."""
        return import_export.stored_batches(self.clickhouse, run)

    def put(self, run: int, series: Sequence[SeriesSamples]) -> None:
        """Store the series of a run that another store had."""
        import_export.put(self.clickhouse, run, series)

    def put_batches(self, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Record the batches of a run that another store had."""
        import_export.put_batches(self.clickhouse, run, stored)

    # Writing

    def append(self, batches: Sequence[SampleBatch]) -> CommitAck:
        """Store batches, and wait until they are durable."""
        return self.submit(batches).result()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Store batches without waiting for the result."""
        try:
            for batch in batches:
                batch.check()
                batch.check_metrics()
        except ValueError as error:
            rejected: Future[CommitAck] = Future()
            rejected.set_exception(error)
            return rejected
        return self._commits.submit(batches)

    # Reading

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        """Read the samples of series as they were written."""
        return self._reader.read(runs, metrics, t0_ms, t1_ms)

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        """Read the series on a bucket grid."""
        return self._reader.read_buckets(runs, metrics, on)

    def active_runs(self, since_ms: int) -> list[int]:
        """Return the ids, ascending, of the runs with a sample at or after this time."""
        return self._reader.active_runs(since_ms)

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        """Return the newest values of runs, of these metrics or all."""
        return self._reader.latest(runs, metrics)

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        """Return the time of the last sample of each run that has any, ms UTC."""
        return self._reader.last_times(runs)

    def sizes(self, runs: Sequence[int]) -> dict[int, int]:
        """From the number of samples and what a sample takes on average."""
        if not runs:
            return {}
        stored = self._removal.size_bytes()
        rows = self._rows()
        of_runs = self.clickhouse.select(
            f"SELECT run, count() AS n FROM samples WHERE run IN ({id_list(runs)}) GROUP BY run", _SIZE
        )
        return {run: max(1, stored * count // max(rows, 1)) for run, count in of_runs.tolist()}

    def aggregate(
        self,
        metric: int,
        runs: Sequence[int],
        t0_ms: int,
        t1_ms: int,
        bucket_ms: int | None = None,
        group_by: Mapping[int, int] | None = None,
    ) -> ReadResult[MetricAggregate]:
        """Aggregate a metric over runs, by group and bucket."""
        query = AggregateQuery(metric, frozenset(runs), t0_ms, t1_ms, bucket_ms, group_by)
        return aggregate(self.clickhouse, query)

    # Deleting and maintenance

    def delete(self, runs: Sequence[int]) -> None:
        """Delete everything about these runs."""
        if runs:
            with self._removing:
                self._removal.delete(runs)
                self._insertion.forget(runs)

    def drop_before(self, t_ms: int) -> None:
        """Delete the samples older than `t_ms`."""
        with self._removing:
            self._removal.drop_before(t_ms)

    def shrink_to(self, size_bytes: int) -> None:
        """Delete the oldest samples until the store uses at most `size_bytes`, as far as possible."""
        with self._removing:
            self._removal.shrink_to(size_bytes)

    def flush(self) -> None:
        """Store the batches that wait on the disk."""
        self._commits.store_waiting()

    def stats(self) -> StoreStats:
        """While ClickHouse cannot be reached, counts and size are the last known."""
        away, warnings = self._commits.away, []
        if away is not None:
            warnings.append(away)
        else:
            try:
                with deadline.within(PROMPT_S):
                    self._last_stats = self._counts()
            except (StoreError, TooSlow) as error:
                warnings.append(str(error) or f"ClickHouse at {self.address} does not answer")
        waiting, limit = self._waiting.bytes, self._waiting.limit_bytes
        if waiting:
            warnings.append(f"{waiting} of at most {limit} bytes wait for ClickHouse: {away}")
        problem = self._waiting.problem() or self._preparation.refusal
        if waiting >= limit * 0.99:
            problem = problem or f"ClickHouse has not stored anything for too long: {away}"
        counts = self._last_stats
        return StoreStats(
            counts.runs,
            counts.samples,
            unsealed_samples=0,
            waiting_batches=self._commits.in_memory,
            size_bytes=counts.size_bytes,
            problem=problem,
            warnings=tuple(warnings),
            threads={
                thread.name: thread.problem for thread in (self._commits.thread, self._commits.waiting_thread)
            },
        )

    def _rows(self) -> int:
        """Return the number of stored samples, also those that others replace."""
        parts = self.clickhouse.layout.parts("samples")
        return int(self.clickhouse.command(f"SELECT sum(rows) {parts}") or 0)

    def _counts(self) -> StoreStats:
        rows = self._rows()
        if rows > _COUNTED_ROWS:
            counts = self.clickhouse.select(
                f"SELECT uniqExact(run) AS runs, toUInt64({rows}) AS samples FROM extents", _COUNT
            )
        else:
            counts = self.clickhouse.select(
                "SELECT uniqExact(run) AS runs, count() AS samples FROM samples FINAL", _COUNT
            )
        runs, samples = counts[0].tolist()
        return StoreStats(runs, samples, 0, 0, self._removal.size_bytes(), None)

    def close(self) -> None:
        """Finish submitted batches and close the store. Closing twice has no effect."""
        if not self._closed:
            self._closed = True
            self._commits.close()
            self._opened.close()
