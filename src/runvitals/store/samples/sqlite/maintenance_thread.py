"""The background thread that seals heads, trims the log, compacts, and runs operations such as `delete`.

It is the only thread that writes to month files, in small steps with one transaction each. It shares nothing
but the interpreter's lock with the commit thread, so no append waits for a seal.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from runvitals.store.samples.cold.reading import ColdUnavailable
from runvitals.store.samples.cold.storage import ColdStorage
from runvitals.store.samples.interface import StoreClosed, StoreError
from runvitals.store.samples.sqlite import retention
from runvitals.store.samples.sqlite.blocks import Block
from runvitals.store.samples.sqlite.commit_thread import CommitThread
from runvitals.store.samples.sqlite.compaction import Compactor
from runvitals.store.samples.sqlite.database import DamagedFile
from runvitals.store.samples.sqlite.head import Head, Heads
from runvitals.store.samples.sqlite.log import Log
from runvitals.store.samples.sqlite.month_files import Month, MonthFiles
from runvitals.store.samples.sqlite.reader import Reader, by_month
from runvitals.store.samples.sqlite.sealing import seal
from runvitals.store.samples.sqlite.settings import StoreSettings
from runvitals.store.supervised_thread import SupervisedThread

_CHECK_EVERY_S = 1.0
_RETRY_S = 5.0
_MAX_FETCHED = 10_000
"""Objects of cold storage for one step."""
_MAX_SAMPLES = 250_000
"""In one step: two runs of 2,000 ticks and 60 metrics, or many short ones."""

log = logging.getLogger("runvitals.store")


class MaintenanceThread:
    """The thread that seals, compacts and deletes.

    Args:
        log: written to by the commit thread, which is started and closed together with this one.
        clock_ms: the time now, ms UTC.
        cold: cold storage; None if there is none.
    """

    def __init__(
        self,
        months: MonthFiles,
        heads: Heads,
        reader: Reader,
        log: Log,
        settings: StoreSettings,
        clock_ms: Callable[[], int],
        cold: ColdStorage | None = None,
    ) -> None:
        self._months = months
        self._heads = heads
        self._reader = reader
        self._log = log
        self.commit_thread = CommitThread(log, heads, settings, self.check, lambda: self.problem)
        self._settings = settings
        self._clock_ms = clock_ms
        self._cold = cold
        self._compactor = Compactor(months, settings, clock_ms)
        self._sealed: dict[int, int] = {}
        self._trimmed_s = 0.0
        self._changed = threading.Condition()
        self._calls: list[Callable[[], None]] = []
        self._problem: str | None = None
        self.thread = SupervisedThread("store-sealer", self._turn, self._wake, longest_pause_s=_RETRY_S)

    @property
    def problem(self) -> str | None:
        """Why sealing or committing fails at present."""
        commits = self.commit_thread
        return self._problem or self.thread.problem or commits.thread.problem or commits.problem

    def start(self) -> None:
        """Start the commit thread and this one."""
        self.commit_thread.start()
        self.thread.start()

    def check(self) -> None:
        """Called after each commit: wakes the thread if there is something to seal now."""
        if self._heads.full or self._heads.bytes > self._settings.head_bytes:
            with self._changed:
                self._changed.notify()

    def call(self, work: Callable[[], None]) -> None:
        """Run a function in this thread, between its steps.

        Raises:
            StoreClosed: the thread is closing; and what `work` raises.
        """
        future: Future[None] = Future()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                future.set_exception(error)
            else:
                future.set_result(None)

        with self._changed:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._calls.append(run)
            self._changed.notify()
        future.result()

    def close(self) -> None:
        """Finish the current step and queued calls, end this thread, then the commit thread."""
        with self._changed:  # nothing may be queued after the last turn
            self.thread.closing.set()
        self.thread.close()
        self.commit_thread.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _turn(self) -> bool:
        with self._changed:
            if not (self._calls or self.thread.closing.is_set() or self._to_seal()):
                self._changed.wait(_CHECK_EVERY_S)
            calls, self._calls = self._calls, []
            if not calls and self.thread.closing.is_set():
                return False
        for call in calls:
            call()
        if not self.thread.closing.is_set():
            self._step()
        return True

    def _step(self) -> None:
        """Do what is most urgent."""
        heads = self._to_seal()
        if heads:
            self._seal(heads)
        elif not self._heads.unsealed():
            self._problem = None
        if self._sealed and time.monotonic() - self._trimmed_s > _CHECK_EVERY_S:
            self._trim()
        self._record_months()
        if not heads:
            self._compactor.step()

    # Sealing

    def make_room(self) -> None:
        """Seal while the heads take too much memory. For use before the thread is started."""
        while self._heads.bytes > self._settings.head_bytes:
            self._seal_together(self._detach(self._to_seal()))

    def _to_seal(self) -> list[Head]:
        """Return the heads that are full, old, take too much memory, or keep the log long.

        At most for one step.
        """
        now_s = time.monotonic()
        unsealed = self._heads.unsealed()
        retried = [head for head in unsealed if head.retry_s <= now_s]
        failed = {head.run for head in unsealed}
        growing = [head for head in self._heads.growing() if head.run not in failed]
        old_s = now_s - self._settings.seal_age_s
        due = [head for head in growing if head.ticks >= self._settings.chunk_ticks or head.since_s <= old_s]
        if self._heads.bytes > self._settings.head_bytes:
            due += sorted(growing, key=lambda head: -head.bytes)
        if self._log.bytes > self._settings.log_bytes:
            due += sorted(growing, key=lambda head: head.first_seq)
        return _choose_heads(_MAX_SAMPLES, [*retried, *due])

    def _seal(self, heads: Sequence[Head]) -> None:
        """Seal heads together; if that fails, one by one, so that one does not block the others."""
        detached = self._detach(heads)
        try:
            self._seal_together(detached)
        except Exception as error:  # noqa: BLE001 - logged, and retried
            if len(detached) > 1:
                for head in detached:
                    self._seal([head])
                return
            if not isinstance(error, ColdUnavailable):  # those samples wait in memory, and others are sealed
                self._report(error)
            for head in detached:
                head.retry_s = time.monotonic() + _RETRY_S

    def _detach(self, heads: Iterable[Head]) -> list[Head]:
        detached = (self._heads.detach(head.run) for head in heads)
        return [head for head in detached if head is not None]

    def _seal_together(self, heads: Sequence[Head]) -> None:
        by_run = by_month({head.run: head.blocks() for head in heads})
        for month in sorted({month for months in by_run.values() for month in months}):
            self._seal_month(month, {run: months[month] for run, months in by_run.items() if month in months})
        runs = [head.run for head in heads]
        self._reader.forget_latest(runs)
        self._heads.release_sealed(runs)
        self._sealed.update((head.run, head.last_seq) for head in heads)

    def _seal_month(self, month: Month, runs: dict[int, list[Block]]) -> None:
        with self._months.writing(month) as connection:
            for run, blocks in runs.items():
                seal(connection, run, blocks, self._settings, self._clock_ms())
        self._compactor.note_sealed(month)

    def _report(self, error: Exception) -> None:
        is_expected = isinstance(error, StoreError)
        problem = str(error) if is_expected else repr(error)
        if problem != self._problem:  # logged once, not at every retry
            log.error("could not seal samples, will retry: %s", problem, exc_info=not is_expected)
        self._problem = problem

    def _record_months(self) -> None:
        recorded = self._months.recorded_months()
        if recorded != self._log.months:
            self.commit_thread.call(lambda log: log.record_months(recorded))

    def _trim(self) -> None:
        """Delete sealed batches from the log."""
        self._trimmed_s = time.monotonic()
        sealed, self._sealed = self._sealed, {}
        self.commit_thread.call(lambda log: log.record_sealed(sealed))
        self._record_months()
        while self.commit_thread.call(lambda log: log.trim(self._heads.oldest_seq())):
            pass

    # Operations, run with `call`

    def flush(self) -> None:
        """Seal everything that is in memory now.

        Raises:
            StoreError: something could not be sealed.
        """
        # A run whose sealing failed before has two heads; the detached one is older and comes first.
        waiting = [*self._heads.unsealed(), *self._heads.growing()]
        while waiting:
            detached = self._detach(_choose_heads(_MAX_SAMPLES, waiting))
            self._with_cold(lambda heads=detached: self._seal_together(heads))  # type: ignore[misc]
            waiting = [head for head in waiting if head not in detached]
        self._trim()

    def restore(self, run: int, blocks: Sequence[Block]) -> None:
        """Seal samples that were recovered from a damaged file."""
        for month, in_month in by_month({run: list(blocks)})[run].items():
            self._with_cold(lambda m=month, b=in_month: self._seal_month(m, {run: b}))  # type: ignore[misc]
        self._reader.forget_latest([run])

    def _with_cold(self, work: Callable[[], None]) -> None:
        """Do something completely, and wait for what it needs of cold storage.

        Raises:
            ColdUnavailable: it cannot be read at present.
        """
        for fetched in range(_MAX_FETCHED + 1):
            try:
                work()
                return
            except ColdUnavailable as error:
                if self._cold is None or error.sha256 is None or fetched == _MAX_FETCHED:
                    raise
                self._cold.fetch(error.sha256)

    def compact(self) -> None:
        """Seal and compact everything, and release free space to the file system."""
        self.flush()
        self._with_cold(self._compactor.compact_all)
        self.commit_thread.call(Log.release_free_pages)

    def delete(self, runs: Iterable[int]) -> None:
        """Delete everything about these runs."""
        for run in dict.fromkeys(runs):
            self.commit_thread.call(lambda log, run=run: self._delete_unsealed(log, run))  # type: ignore[misc]
            self.delete_from_months(run)
            self.commit_thread.call(lambda log, run=run: log.delete_done(run))  # type: ignore[misc]

    def _delete_unsealed(self, log: Log, run: int) -> None:
        log.delete(run)
        self._heads.drop(run)

    def delete_from_months(self, run: int) -> None:
        """Delete runs from the month files that can be read."""
        for month in self._months.existing():
            with suppress(DamagedFile), self._months.writing(month) as connection:
                retention.delete_run(connection, month, run)
        self._reader.forget_latest([run])

    def drop_before(self, t_ms: int) -> None:
        """Delete the samples older than `t_ms`."""
        retention.drop_before(self._months, t_ms)
        self._record_months()
        self._reader.forget_latest(None)

    def shrink_to(self, size_bytes: int, size: Callable[[], int]) -> None:
        """Delete the oldest samples until the store uses at most `size_bytes`, as far as possible."""
        self.flush()
        self.commit_thread.call(Log.release_free_pages)
        retention.shrink_to(self._months, size_bytes, size)
        self._record_months()
        self._reader.forget_latest(None)


def _choose_heads(max_samples: int, heads: Iterable[Head]) -> list[Head]:
    """Return the first heads with at most `max_samples` samples together, each run once.

    At least one head.
    """
    chosen: dict[int, Head] = {}
    samples = 0
    for head in heads:
        if head.run not in chosen:
            if chosen and samples + head.samples > max_samples:
                break
            chosen[head.run] = head
            samples += head.samples
    return list(chosen.values())
