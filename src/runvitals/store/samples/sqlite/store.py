"""The store: a folder of SQLite files, written to by one process and read by any number.

store.lock          the pid of the process that has it open (`folder_lock`)
log.db              samples that are not sealed yet (`log`)
samples-2026-10.db  chunks, packs and the day roll-up of a month (`month_files`)
cold-cache          what was read from cold storage, if there is any (`cold`)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from runvitals.base.buckets import Grid
from runvitals.base.private_folders import make_private
from runvitals.model.durations import DAY_MS
from runvitals.store.samples.cold import noted_objects
from runvitals.store.samples.cold import rows as cold_rows
from runvitals.store.samples.cold.mover import ColdMover
from runvitals.store.samples.cold.storage import CachedOnly, ColdSettings, ColdStorage
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
)
from runvitals.store.samples.sqlite import aggregate, database, log
from runvitals.store.samples.sqlite.aggregation_sums import AggregateQuery
from runvitals.store.samples.sqlite.blocks import Block, on_disk
from runvitals.store.samples.sqlite.database import DamagedFile
from runvitals.store.samples.sqlite.folder_lock import FolderLock
from runvitals.store.samples.sqlite.head import Heads
from runvitals.store.samples.sqlite.log import Log, Pairing
from runvitals.store.samples.sqlite.maintenance_thread import MaintenanceThread
from runvitals.store.samples.sqlite.month_files import MISSING, SET_ASIDE, Month, MonthFiles
from runvitals.store.samples.sqlite.reader import Reader
from runvitals.store.samples.sqlite.run_sizes import run_sizes
from runvitals.store.samples.sqlite.settings import StoreSettings


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class SqliteChunks:
    """A `SampleStore` in a folder, which is created if it does not exist.

    Args:
        clock_ms: the time now, ms UTC; for tests.
        cold: where the values of old chunks are; None: where they were moved before, if they were.

    Raises:
        StoreError: another process has the folder open, it is not writable, or of a later format version.
    """

    capabilities = Capabilities(durable_ack=True, exact_float64=True, read_after_write_ms=0)

    def __init__(
        self,
        folder: str,
        settings: StoreSettings | None = None,
        clock_ms: Callable[[], int] = _now_ms,
        cold: ColdSettings | None = None,
    ) -> None:
        settings = settings or StoreSettings()
        try:
            make_private(folder)
        except OSError as error:
            raise StoreError(f"could not create the store in {folder}: {error.strerror}") from error
        self.folder = folder
        self._lock = FolderLock(folder)
        try:
            self._months = MonthFiles(folder)
            has_samples = bool(self._months.existing() or self._months.set_aside_files())
            log.check_exists(folder, has_samples)
            self._log = Log(os.path.join(folder, log.NAME))
            pairing = self._log.pairing
            self._months.expect(self._log.months)
            self._months.store_id = pairing.id if pairing else self._months.common_id()
            self._cold = self._open_cold(cold)
            self._highest_run = max(map(self._open_month, self._months.existing()), default=0)
        except BaseException:
            self._lock.close()
            raise
        self._known_metrics: set[tuple[int, ...]] = set()
        self._closed = False
        self._heads = Heads(settings.chunk_ticks)
        self._reader = Reader(self._months, self._heads)
        self._maintenance = MaintenanceThread(
            self._months, self._heads, self._reader, self._log, settings, clock_ms, self._cold
        )
        self._commit_thread = self._maintenance.commit_thread
        self._recover()
        self._maintenance.start()
        self._mover = None
        if self._cold is not None:
            self._mover = ColdMover(self._cold, self._months, self._maintenance, clock_ms)
            self._months.removing = self._mover.note_removed
            self._mover.start()

    def _open_cold(self, settings: ColdSettings | None) -> ColdStorage | None:
        if settings is None:
            address = noted_objects.read_address(self._log.connection)
            if address is None:
                return None
            settings = ColdSettings(address)
        else:
            noted_objects.record_address(self._log, settings.address)
        storage = ColdStorage(settings, self.folder)
        storage.remove_leftovers()
        self._months.cold, self._months.cold_for_writer = storage, CachedOnly(storage)
        return storage

    def _open_month(self, month: Month) -> int:
        """Open a month file; a damaged one is set aside. Returns the highest run in it."""
        path = self._months.path(month)
        try:
            if not os.path.isfile(path):
                raise DamagedFile(f"{path} is not a file")
            connection = self._months.writer(month)
            with database.store_errors(path):
                (highest,) = connection.execute("SELECT max(run) FROM run").fetchone()
        except DamagedFile as error:
            self._months.set_aside(month, error)
            return 0
        return highest or 0

    @property
    def pairing(self) -> Pairing | None:
        """The pairing with a metadata store; None if there is none yet."""
        return self._log.pairing

    @property
    def name(self) -> str:
        """The folder, as errors name the store."""
        return self.folder

    @property
    def store_id(self) -> str | None:
        """The id that the store shares with its metadata store; from the month files if the log was lost."""
        return self._months.store_id

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever stored here."""
        return self._log.is_new and not self._months.existing() and not self._months.set_aside_files()

    def highest(self) -> tuple[int, int]:
        """Return the highest id of a run or writer, and of a metric, that was stored."""
        run, metric = self._commit_thread.call(Log.highest)
        return max([run, self._highest_run, *self._heads.runs()]), metric

    def pair(self, pairing: Pairing) -> None:
        """Record the pairing with a metadata store. Durable."""
        self._commit_thread.call(lambda log: log.pair(pairing))
        self._months.store_id = pairing.id

    def _recover(self) -> None:
        """Finish pending deletions, and restore the heads from the log."""
        for run in self._log.pending_deletions():
            self._maintenance.delete_from_months(run)
            self._log.delete_done(run)
        for seq, batches in self._log.unsealed():
            self._heads.add(batches, seq)
            self._maintenance.make_room()

    def __enter__(self) -> SqliteChunks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish submitted batches and close the store. Closing twice has no effect."""
        if not self._closed:
            self._closed = True
            if self._mover is not None:
                self._mover.close()
            self._maintenance.close()
            self._months.close()
            self._log.close()
            self._lock.close()

    # Writing

    def append(self, batches: Sequence[SampleBatch]) -> CommitAck:
        """Store batches, and wait until they are durable."""
        return self.submit(batches).result()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Store batches without waiting for the result."""
        try:
            for batch in batches:
                self._check(batch)
        except ValueError as error:
            rejected: Future[CommitAck] = Future()
            rejected.set_exception(error)
            return rejected
        return self._commit_thread.submit(batches)

    def _check(self, batch: SampleBatch) -> None:
        batch.check()
        if batch.metrics not in self._known_metrics:
            batch.check_metrics()
            self._known_metrics.add(batch.metrics)

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
        """Return how many bytes the samples of each run take."""
        return run_sizes(self._months, self._heads, runs)

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
        return aggregate.aggregate(self._reader, query)

    # Deleting and maintenance

    def delete(self, runs: Sequence[int]) -> None:
        """Delete everything about these runs."""
        self._maintenance.call(lambda: self._maintenance.delete(runs))

    def drop_before(self, t_ms: int) -> None:
        """Delete the samples older than `t_ms`."""
        self._maintenance.call(lambda: self._maintenance.drop_before(t_ms))

    def shrink_to(self, size_bytes: int) -> None:
        """Delete the oldest samples until the store uses at most `size_bytes`, as far as possible."""
        self._maintenance.call(lambda: self._maintenance.shrink_to(size_bytes, self._size))

    def flush(self) -> None:
        """Seal everything that was appended."""
        self._maintenance.call(self._maintenance.flush)

    def compact(self) -> None:
        """Flush, compact every run now instead of later, and release free space to the file system."""
        self._maintenance.call(self._maintenance.compact)

    def move_to_cold_storage(self) -> int:
        """Move old samples now; return the number of objects made, or raise StoreError."""
        return self._mover.move() if self._mover is not None else 0

    def remove_unused_objects(self) -> int:
        """Remove unneeded objects of cold storage now; return the number removed, or raise StoreError."""
        return self._mover.remove_unused() if self._mover is not None else 0

    def stats(self) -> StoreStats:
        """Return statistics and problems, for operators."""
        # Memory before the files: samples that are sealed meanwhile are counted twice rather than not at all.
        runs, unsealed, samples = set(self._heads.runs()), self._heads.samples, 0
        warnings = [
            f"{path} is {SET_ASIDE}: `runvitals store repair`" for _, path in self._months.set_aside_files()
        ]
        warnings += [f"{path} {MISSING}" for _, path in self._months.missing()]
        warnings += _damaged_parts(self._log.path, self._log.damaged_rows)
        for month in self._months.existing():
            if not os.path.exists(self._months.path(month)):
                continue
            try:
                with (
                    self._months.reader(month) as connection,
                    database.store_errors(self._months.path(month)),
                ):
                    runs.update(run for (run,) in connection.execute("SELECT run FROM run"))
                    samples += connection.execute("SELECT coalesce(sum(samples), 0) FROM run").fetchone()[0]
                    damaged = connection.execute("SELECT count(*) FROM damaged").fetchone()[0]
                    warnings += _damaged_parts(self._months.path(month), damaged)
            except StoreError as error:
                warnings.append(str(error))
        threads = [self._maintenance.thread, self._commit_thread.thread]
        if self._cold is not None and self._mover is not None:
            warnings += [self._cold.problem] if self._cold.problem else []
            threads.append(self._mover.thread)
        return StoreStats(
            runs=len(runs),
            samples=samples,
            unsealed_samples=unsealed,
            waiting_batches=self._commit_thread.waiting,
            size_bytes=self._size(),
            problem=self._maintenance.problem,
            warnings=tuple(warnings),
            threads={thread.name: thread.problem for thread in threads},
            cold_bytes=self._months.cold_bytes(),
        )

    # Migration from and to other stores (see `store.samples.migration`)

    def days(self, run: int) -> list[int]:
        """Return the days since 1970 on which a run may have samples, ascending."""
        days = set[int]()
        for block in self._heads.blocks([run]).get(run, []):
            days.update((block.t // DAY_MS).tolist())
        for month in self._months.existing():
            with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
                row = connection.execute("SELECT min(t0), max(t1) FROM run WHERE run=?", (run,)).fetchone()
            if row[0] is not None:
                days.update(range(row[0] // DAY_MS, row[1] // DAY_MS + 1))
        return sorted(days)

    def stored_batches(self, run: int) -> dict[int, list[tuple[int, int]]]:
        """Ranges of the numbers of stored batches, by writer."""
        return self._commit_thread.call(lambda log: log.stored_batches.of_run(run))

    def put(self, run: int, series: Sequence[SeriesSamples]) -> None:
        """Store samples without a batch."""
        by_times: dict[bytes, list[SeriesSamples]] = {}
        for samples in series:
            by_times.setdefault(samples.t.tobytes(), []).append(samples)
        blocks = [
            on_disk(
                tuple(samples.metric for samples in same),
                same[0].t,
                np.column_stack([samples.values for samples in same]),
            )
            for same in by_times.values()
        ]
        self.restore(run, blocks)

    def put_batches(self, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Note that batches of a run were stored."""
        self._commit_thread.call(lambda log: log.put_batches(run, stored))

    # Repair (see `repair`)

    def runs(self) -> list[int]:
        """Return the ids of the runs that have samples, ascending."""
        runs = set(self._heads.runs())
        for month in self._months.existing():
            with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
                runs.update(run for (run,) in connection.execute("SELECT run FROM run"))
        return sorted(runs)

    def set_aside(self) -> list[str]:
        """Return the paths of the month files that were set aside."""
        return [path for _, path in self._months.set_aside_files()]

    def accept_missing(self) -> list[str]:
        """Stop reporting deleted month files. Returns their paths."""
        return self._months.accept_missing()

    @property
    def cold(self) -> ColdStorage | None:
        """Cold storage; None if there is none."""
        return self._cold

    def missing_months(self) -> set[Month]:
        """Return the months whose files were deleted."""
        return {month for month, _ in self._months.missing()}

    def known_objects(self) -> set[str]:
        """The objects of cold storage that month files refer to, or that may not be needed any more."""
        digests = set(self._commit_thread.call(noted_objects.read_all))
        for month in self._months.existing():
            with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
                digests.update(cold_rows.objects(connection))
        return digests

    def note_unneeded(self, digests: Collection[str]) -> None:
        """Let objects of cold storage be removed later, whose samples are in month files again."""
        if self._mover is not None:
            self._mover.note_removed(digests)

    def restore(self, run: int, blocks: Sequence[Block]) -> None:
        """Store samples that were recovered from a damaged file."""
        self._maintenance.call(lambda: self._maintenance.restore(run, blocks))

    def rename_set_aside(self, path: str, into: str) -> str:
        """Rename a file that was set aside, after its samples were recovered. Returns its new path."""
        return self._months.rename_set_aside(path, into)

    def _size(self) -> int:
        return database.size(self._log.path) + self._months.size() + self._months.cold_bytes()


def _damaged_parts(path: str, count: int) -> list[str]:
    """A warning about the parts of a file that are damaged and were set aside in it, if there are any."""
    if not count:
        return []
    return [
        f"{path}: {count:,} damaged parts were set aside: `runvitals store check` lists them, and "
        "`runvitals store repair` moves them to a file of their own"
    ]
