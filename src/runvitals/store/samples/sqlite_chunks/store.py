"""The store itself: a folder of SQLite files, one process that writes to it, any number that read.

store.lock          the pid of the process that has it open
log.db              what was appended and is not sealed (`log`)
samples-2026-10.db  chunks, packs and the day roll-up of a month (`months`)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType

from runvitals.buckets import Grid
from runvitals.store.samples.contract import (
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
from runvitals.store.samples.sqlite_chunks import aggregate, database, log
from runvitals.store.samples.sqlite_chunks.aggregation_sums import Question
from runvitals.store.samples.sqlite_chunks.blocks import Block
from runvitals.store.samples.sqlite_chunks.database import DamagedFile
from runvitals.store.samples.sqlite_chunks.folder_lock import FolderLock
from runvitals.store.samples.sqlite_chunks.head import Heads
from runvitals.store.samples.sqlite_chunks.log import Log, Pairing
from runvitals.store.samples.sqlite_chunks.maintenance_thread import Sealer
from runvitals.store.samples.sqlite_chunks.month_files import ASIDE, MISSING, Month, Months
from runvitals.store.samples.sqlite_chunks.reader import Reader
from runvitals.store.samples.sqlite_chunks.settings import Settings


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class SqliteChunks:
    """A `SampleStore` in a folder, which is made if it is not there.

    Args:
        settings: the defaults are good.
        clock_ms: the time of day, for tests.

    Raises:
        StoreError: another process has the folder open, it cannot be written to, or it is of a later version.
    """

    capabilities = Capabilities(durable_ack=True, exact_float64=True, read_after_write_ms=0)

    def __init__(
        self, folder: str, settings: Settings | None = None, clock_ms: Callable[[], int] = _now_ms
    ) -> None:
        settings = settings or Settings()
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreError(f"the store in {folder} cannot be made: {error.strerror}") from error
        self.folder = folder
        self._lock = FolderLock(folder)
        try:
            self._months = Months(folder)
            log.check_there(folder, bool(self._months.there() or self._months.aside()))
            self._log = Log(os.path.join(folder, log.NAME))
            pairing = self._log.pairing
            self._months.expect(self._log.months)
            self._months.store_id = pairing.id if pairing else self._months.common_id()
            self._highest_run = max(map(self._open_month, self._months.there()), default=0)
        except BaseException:
            self._lock.close()
            raise
        self._known_metrics: set[tuple[int, ...]] = set()
        self._closed = False
        self._heads = Heads(settings.chunk_ticks)
        self._reader = Reader(self._months, self._heads)
        self._sealer = Sealer(self._months, self._heads, self._reader, self._log, settings, clock_ms)
        self._committer = self._sealer.committer
        self._recover()
        self._sealer.start()

    def _open_month(self, month: Month) -> int:
        """Open a month's file, which is set aside if it is damaged; the highest run in it."""
        path = self._months.path(month)
        try:
            if not os.path.isfile(path):
                raise DamagedFile(f"{path} is no file")
            connection = self._months.writer(month)
            with database.failing(path):
                (highest,) = connection.execute("SELECT max(run) FROM run").fetchone()
        except DamagedFile as error:
            self._months.set_aside(month, error)
            return 0
        return highest or 0

    @property
    def pairing(self) -> Pairing | None:
        """The catalogue that the numbers here come from; None: it was not said yet."""
        return self._log.pairing

    @property
    def store_id(self) -> str | None:
        """The id that the store shares with its catalogue, if only its months' files say so."""
        return self._months.store_id

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever stored here."""
        return self._log.is_new and not self._months.there() and not self._months.aside()

    def highest(self) -> tuple[int, int]:
        """The highest number of a run or writer, and of a metric, that was stored here."""
        run, metric = self._committer.call(Log.highest)
        return max([run, self._highest_run, *self._heads.runs()]), metric

    def pair(self, pairing: Pairing) -> None:
        """Note the catalogue that the numbers here come from. Durable."""
        self._committer.call(lambda log: log.pair(pairing))
        self._months.store_id = pairing.id

    def _recover(self) -> None:
        """Bring back what was in memory when the store was last closed, or ended otherwise."""
        for run in self._log.half_deleted():
            self._sealer.delete_from_months(run)
            self._log.delete_done(run)
        for seq, batches in self._log.unsealed():
            self._heads.add(batches, seq)
            self._sealer.make_room()

    def __enter__(self) -> SqliteChunks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._sealer.close()
            self._months.close()
            self._log.close()
            self._lock.close()

    # Writing

    def append(self, batches: Sequence[SampleBatch]) -> CommitAck:
        return self.submit(batches).result()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        try:
            for batch in batches:
                self._check(batch)
        except ValueError as error:
            refused: Future[CommitAck] = Future()
            refused.set_exception(error)
            return refused
        return self._committer.submit(batches)

    def _check(self, batch: SampleBatch) -> None:
        batch.check()
        if batch.metrics not in self._known_metrics:
            batch.check_metrics()
            self._known_metrics.add(batch.metrics)

    # Reading

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        return self._reader.read(runs, metrics, t0_ms, t1_ms)

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        return self._reader.read_buckets(runs, metrics, on)

    def active_runs(self, since_ms: int) -> list[int]:
        return self._reader.active_runs(since_ms)

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        return self._reader.latest(runs, metrics)

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        return self._reader.last_times(runs)

    def aggregate(
        self,
        metric: int,
        runs: Sequence[int],
        t0_ms: int,
        t1_ms: int,
        bucket_ms: int | None = None,
        group_by: Mapping[int, int] | None = None,
    ) -> ReadResult[MetricAggregate]:
        question = Question(metric, frozenset(runs), t0_ms, t1_ms, bucket_ms, group_by)
        return aggregate.aggregate(self._reader, question)

    # Taking away, and the rest

    def delete(self, runs: Sequence[int]) -> None:
        self._sealer.call(lambda: self._sealer.delete(runs))

    def drop_before(self, t_ms: int) -> None:
        self._sealer.call(lambda: self._sealer.drop_before(t_ms))

    def shrink_to(self, size_bytes: int) -> None:
        self._sealer.call(lambda: self._sealer.shrink_to(size_bytes, self._size))

    def flush(self) -> None:
        self._sealer.call(self._sealer.flush)

    def compact(self) -> None:
        """Flush, and bring every run into the form it has after a while by itself; give back what is
        not used.
        """
        self._sealer.call(self._sealer.compact)

    def stats(self) -> StoreStats:
        # Memory before the files: what is sealed meanwhile is counted twice at worst, and not missed.
        runs, unsealed, samples = set(self._heads.runs()), self._heads.samples, 0
        warnings = [f"{path} is {ASIDE}: `runvitals store repair`" for _, path in self._months.aside()]
        warnings += [f"{path} {MISSING}" for _, path in self._months.missing()]
        for month in self._months.there():
            if not os.path.exists(self._months.path(month)):
                continue
            try:
                with self._months.reader(month) as connection, database.failing(self._months.path(month)):
                    runs.update(run for (run,) in connection.execute("SELECT run FROM run"))
                    samples += connection.execute("SELECT coalesce(sum(samples), 0) FROM run").fetchone()[0]
            except StoreError as error:
                warnings.append(str(error))
        return StoreStats(
            runs=len(runs),
            samples=samples,
            unsealed_samples=unsealed,
            waiting_batches=self._committer.waiting,
            size_bytes=self._size(),
            problem=self._sealer.problem,
            warnings=tuple(warnings),
            threads={one.name: one.problem for one in (self._sealer.thread, self._committer.thread)},
        )

    # Repair (see `repair`)

    def runs(self) -> list[int]:
        """The numbers that there are samples under, ascending."""
        found = set(self._heads.runs())
        for month in self._months.there():
            with self._months.reader(month) as connection, database.failing(self._months.path(month)):
                found.update(run for (run,) in connection.execute("SELECT run FROM run"))
        return sorted(found)

    def set_aside(self) -> list[str]:
        """The damaged files of months that were set aside."""
        return [path for _, path in self._months.aside()]

    def accept_missing(self) -> list[str]:
        """Expect the files of months that were deleted no longer; their paths."""
        return self._months.accept_missing()

    def bring_back(self, run: int, blocks: Sequence[Block]) -> None:
        """Store what was read of a damaged file."""
        self._sealer.call(lambda: self._sealer.bring_back(run, blocks))

    def forget_aside(self, path: str, into: str) -> str:
        """Rename a file that was set aside: all that can be had of it is stored. Its path now."""
        return self._months.forget_aside(path, into)

    def _size(self) -> int:
        return database.size(self._log.path) + self._months.size()
