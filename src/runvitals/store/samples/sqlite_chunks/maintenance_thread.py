"""The thread that works in the background: seals heads, trims the log, compacts, and does what it is told to.

It alone writes to the files of months, in small steps, each a transaction of its own. It shares nothing with
the committer but the interpreter's lock, so that no append waits for a seal.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from runvitals.store.samples.contract import StoreClosed, StoreError
from runvitals.store.samples.sqlite_chunks import retention
from runvitals.store.samples.sqlite_chunks.blocks import Block
from runvitals.store.samples.sqlite_chunks.commit_thread import Committer
from runvitals.store.samples.sqlite_chunks.compaction import Compactor
from runvitals.store.samples.sqlite_chunks.database import DamagedFile
from runvitals.store.samples.sqlite_chunks.head import Head, Heads
from runvitals.store.samples.sqlite_chunks.log import Log
from runvitals.store.samples.sqlite_chunks.month_files import Month, Months
from runvitals.store.samples.sqlite_chunks.reader import Reader, by_month
from runvitals.store.samples.sqlite_chunks.sealing import seal
from runvitals.store.samples.sqlite_chunks.settings import Settings
from runvitals.store.supervised_thread import SupervisedThread

_LOOK_S = 1.0
_RETRY_S = 5.0
_MOST_SAMPLES = 250_000
"""In one step: two runs of 2,000 ticks and 60 metrics, or many short ones."""

log = logging.getLogger("runvitals.store")


class Sealer:
    """
    Args:
        log: written to by the committer, which is started and ended together with this.
        clock_ms: the time of day.
    """

    def __init__(
        self,
        months: Months,
        heads: Heads,
        reader: Reader,
        log: Log,
        settings: Settings,
        clock_ms: Callable[[], int],
    ) -> None:
        self._months = months
        self._heads = heads
        self._reader = reader
        self._log = log
        self.committer = Committer(log, heads, settings, self.look, lambda: self.problem)
        self._settings = settings
        self._clock_ms = clock_ms
        self._compactor = Compactor(months, settings, clock_ms)
        self._sealed: dict[int, int] = {}
        self._trimmed_s = 0.0
        self._something = threading.Condition()
        self._work: list[Callable[[], None]] = []
        self._problem: str | None = None
        self.thread = SupervisedThread("store-sealer", self._turn, self._wake, longest_pause_s=_RETRY_S)

    @property
    def problem(self) -> str | None:
        """Why nothing can be sealed or committed at present."""
        committer = self.committer
        return self._problem or self.thread.problem or committer.thread.problem or committer.problem

    def start(self) -> None:
        self.committer.start()
        self.thread.start()

    def look(self) -> None:
        """Something was appended: if there is something to seal now, do."""
        if self._heads.full or self._heads.bytes > self._settings.head_bytes:
            with self._something:
                self._something.notify()

    def call(self, work: Callable[[], None]) -> None:
        """Let this thread do something between its steps.

        Raises:
            StoreClosed: the sealer was told to end; and whatever `work` raises.
        """
        future: Future[None] = Future()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - the caller's to handle, whatever it is
                future.set_exception(error)
            else:
                future.set_result(None)

        with self._something:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._work.append(run)
            self._something.notify()
        future.result()

    def close(self) -> None:
        """End after the step that is being done, and what is queued; then the committer."""
        with self._something:  # so that nobody queues anything that would not be done
            self.thread.closing.set()
        self.thread.close()
        self.committer.close()

    def _wake(self) -> None:
        with self._something:
            self._something.notify()

    def _turn(self) -> bool:
        with self._something:
            if not (self._work or self.thread.closing.is_set() or self._to_seal()):
                self._something.wait(_LOOK_S)
            work, self._work = self._work, []
            if not work and self.thread.closing.is_set():
                return False
        for some in work:
            some()
        if not self.thread.closing.is_set():
            self._step()
        return True

    def _step(self) -> None:
        """What is most urgent."""
        heads = self._to_seal()
        if heads:
            self._seal(heads)
        elif not self._heads.unsealed():
            self._problem = None
        if self._sealed and time.monotonic() - self._trimmed_s > _LOOK_S:
            self._trim()
        self._note_months()
        if not heads:
            self._compactor.step()

    # Sealing

    def make_room(self) -> None:
        """Before the start: seal while more is in memory than should be."""
        while self._heads.bytes > self._settings.head_bytes:
            self._seal_together(self._cut(self._to_seal()))

    def _to_seal(self) -> list[Head]:
        """Heads that are full, old, too large together, or hold back the log: as many as fit into a step."""
        now_s = time.monotonic()
        unsealed = self._heads.unsealed()
        again = [head for head in unsealed if head.retry_s <= now_s]
        later = {head.run for head in unsealed}
        growing = [head for head in self._heads.growing() if head.run not in later]
        old_s = now_s - self._settings.seal_age_s
        due = [head for head in growing if head.ticks >= self._settings.chunk_ticks or head.since_s <= old_s]
        if self._heads.bytes > self._settings.head_bytes:
            due += sorted(growing, key=lambda head: -head.bytes)
        if self._log.bytes > self._settings.log_bytes:
            due += sorted(growing, key=lambda head: head.first_seq)
        return _within(_MOST_SAMPLES, [*again, *due])

    def _seal(self, heads: Sequence[Head]) -> None:
        """Seal heads together; where that fails one by one, so that one cannot hold back the others."""
        cut = self._cut(heads)
        try:
            self._seal_together(cut)
        except Exception as error:  # noqa: BLE001 - kept in memory and in the log, told, and tried again
            if len(cut) > 1:
                for head in cut:
                    self._seal([head])
                return
            self._trouble(error)
            for head in cut:
                head.retry_s = time.monotonic() + _RETRY_S

    def _cut(self, heads: Iterable[Head]) -> list[Head]:
        cut = (self._heads.cut(head.run) for head in heads)
        return [head for head in cut if head is not None]

    def _seal_together(self, heads: Sequence[Head]) -> None:
        by_run = by_month({head.run: head.blocks() for head in heads})
        for month in sorted({month for months in by_run.values() for month in months}):
            self._seal_month(month, {run: months[month] for run, months in by_run.items() if month in months})
        runs = [head.run for head in heads]
        self._reader.forget_latest(runs)
        self._heads.sealed(runs)
        self._sealed.update((head.run, head.last_seq) for head in heads)

    def _seal_month(self, month: Month, runs: dict[int, list[Block]]) -> None:
        with self._months.writing(month) as connection:
            for run, blocks in runs.items():
                seal(connection, run, blocks, self._settings, self._clock_ms())
        self._compactor.sealed(month)

    def _trouble(self, error: Exception) -> None:
        known = isinstance(error, StoreError)
        problem = str(error) if known else repr(error)
        if problem != self._problem:  # told once, however often it is tried again
            log.error("the store cannot seal at present: %s", problem, exc_info=not known)
        self._problem = problem

    def _note_months(self) -> None:
        noted = self._months.noted()
        if noted != self._log.months:
            self.committer.call(lambda log: log.note_months(noted))

    def _trim(self) -> None:
        """Delete from the log what is sealed."""
        self._trimmed_s = time.monotonic()
        sealed, self._sealed = self._sealed, {}
        self.committer.call(lambda log: log.note_sealed(sealed))
        self._note_months()
        while self.committer.call(lambda log: log.trim(self._heads.oldest_seq())):
            pass

    # What it is told to do

    def flush(self) -> None:
        """Seal everything that is there now.

        Raises:
            StoreError: something could not be sealed.
        """
        # A run has two where sealing failed before: the one that was cut off then comes first.
        waiting = [*self._heads.unsealed(), *self._heads.growing()]
        while waiting:
            cut = self._cut(_within(_MOST_SAMPLES, waiting))
            self._seal_together(cut)
            waiting = [head for head in waiting if head not in cut]
        self._trim()

    def bring_back(self, run: int, blocks: Sequence[Block]) -> None:
        """Seal samples that were read of a damaged file."""
        for month, some in by_month({run: list(blocks)})[run].items():
            self._seal_month(month, {run: some})
        self._reader.forget_latest([run])

    def compact(self) -> None:
        """Seal everything, compact everything, and give back what is not used."""
        self.flush()
        self._compactor.all()
        self.committer.call(Log.give_back)

    def delete(self, runs: Iterable[int]) -> None:
        for run in dict.fromkeys(runs):
            self.committer.call(lambda log, run=run: self._forget(log, run))  # type: ignore[misc]
            self.delete_from_months(run)
            self.committer.call(lambda log, run=run: log.delete_done(run))  # type: ignore[misc]

    def _forget(self, log: Log, run: int) -> None:
        log.delete(run)
        self._heads.drop(run)

    def delete_from_months(self, run: int) -> None:
        for month in self._months.there():
            with suppress(DamagedFile), self._months.writing(month) as connection:
                retention.delete_run(connection, month, run)
        self._reader.forget_latest([run])

    def drop_before(self, t_ms: int) -> None:
        retention.drop_before(self._months, t_ms)
        self._note_months()
        self._reader.forget_latest(None)

    def shrink_to(self, size_bytes: int, size: Callable[[], int]) -> None:
        self.flush()
        self.committer.call(Log.give_back)
        retention.shrink_to(self._months, size_bytes, size)
        self._note_months()
        self._reader.forget_latest(None)


def _within(most_samples: int, heads: Iterable[Head]) -> list[Head]:
    """The first of some heads, each once, with so many samples; one at least."""
    found: dict[int, Head] = {}
    samples = 0
    for head in heads:
        if head.run not in found:
            if found and samples + head.samples > most_samples:
                break
            found[head.run] = head
            samples += head.samples
    return list(found.values())
