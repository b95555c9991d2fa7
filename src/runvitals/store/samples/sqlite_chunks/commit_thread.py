"""The thread that makes batches durable: whatever has come while one commit was written goes into the
next.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from runvitals.store.samples.contract import CommitAck, SampleBatch, StoreClosed, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite_chunks.head import Heads
from runvitals.store.samples.sqlite_chunks.log import Log
from runvitals.store.samples.sqlite_chunks.settings import Settings
from runvitals.store.supervised_thread import SupervisedThread

_MOST_BATCHES = 1024
_MOST_BYTES = 16 << 20
_POLL_S = 0.0005
_LONGEST_WAIT_FOR_ROOM_S = 30.0
_TOLD_S = 60.0
_LONGEST_PAUSE_S = 5.0
_LOOK_S = 0.02

T = TypeVar("T")
log = logging.getLogger("runvitals.store")


class _Waiting:
    """Batches that were submitted together, and who waits for them."""

    __slots__ = ("batches", "future")

    def __init__(self, batches: Sequence[SampleBatch]) -> None:
        self.batches = batches
        self.future: Future[CommitAck] = Future()


class Committer:
    """Writes the log, alone.

    Args:
        heads: what is durable goes into them, to be read.
        committed: called after each commit.
        problem: why nothing can be sealed at present, if so.
    """

    def __init__(
        self,
        log: Log,
        heads: Heads,
        settings: Settings,
        committed: Callable[[], None],
        problem: Callable[[], str | None],
    ) -> None:
        self._log = log
        self._heads = heads
        self._settings = settings
        self._committed = committed
        self._problem = problem
        self._something = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._work: list[Callable[[], None]] = []
        self._idle = True
        self._last_group = 0
        self._failed: tuple[float, str] | None = None
        self.thread = SupervisedThread(
            "store-committer", self._turn, self._wake, longest_pause_s=_LONGEST_PAUSE_S
        )

    def start(self) -> None:
        self.thread.start()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Queue batches that were checked.

        Raises:
            StoreClosed: the committer was told to end.
        """
        waiting = _Waiting(batches)
        with self._something:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._waiting.append(waiting)
            if self._idle:
                self._something.notify()
        return waiting.future

    def call(self, work: Callable[[Log], T]) -> T:
        """Let the committer's thread do something with the log, between commits; its answer.

        Raises:
            StoreClosed: the committer was told to end; and whatever `work` raises.
        """
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work(self._log))
            except BaseException as error:  # noqa: BLE001 - the caller's to handle, whatever it is
                future.set_exception(error)

        with self._something:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._work.append(run)
            self._something.notify()
        return future.result()

    @property
    def problem(self) -> str | None:
        """Why what came last could not be made durable; None as well when nothing has come for a while."""
        lost = self._log.problem()
        if lost is not None:
            return lost
        failed = self._failed
        # Whoever sends nothing to a server that is not ready must find out that there is room again.
        return failed[1] if failed is not None and time.monotonic() - failed[0] < _TOLD_S else None

    @property
    def waiting(self) -> int:
        """Batches that are not durable yet."""
        with self._something:
            return sum(len(one.batches) for one in self._waiting)

    def close(self) -> None:
        """Commit what waits, and end."""
        with self._something:  # so that nobody submits anything that would not be committed
            self.thread.closing.set()
        self.thread.close()

    def _wake(self) -> None:
        with self._something:
            self._something.notify()

    def _turn(self) -> bool:
        with self._something:
            while not (self._waiting or self._work or self.thread.closing.is_set()):
                self._idle = True
                self._something.wait()
            self._idle = False
            ends = self.thread.closing.is_set() and not self._waiting
        self._do_work()
        if ends:
            return False
        group = self._collect()
        if group:
            self._commit(group)
        return True

    def _collect(self) -> list[_Waiting]:
        """What to commit together: as many as came last time, if they come soon enough.

        Those who wait for an answer before they send again come back all at once, a little after the first. A
        single writer waits for nobody.
        """
        until_s = time.monotonic() + self._settings.group_wait_s
        while (
            0 < len(self._waiting) < self._last_group
            and not self.thread.closing.is_set()
            and time.monotonic() < until_s
        ):
            time.sleep(_POLL_S)
        with self._something:
            batches = size = count = 0
            for waiting in self._waiting:
                batches += len(waiting.batches)
                size += sum(batch.values.nbytes for batch in waiting.batches)
                if count and (batches > _MOST_BATCHES or size > _MOST_BYTES):
                    break
                count += 1
            group, self._waiting = self._waiting[:count], self._waiting[count:]
        if group:
            self._last_group = len(group)
        return group

    def _commit(self, group: list[_Waiting]) -> None:
        try:
            self._wait_for_room()
            acks = self._append(group)
        except StoreError as error:
            if self._failed is None or str(error) != self._failed[1]:  # told once, however often it is tried
                log.error("%d appends failed: %s", len(group), error)
            self._fail(group, error)
        except Exception as error:
            log.exception("%d appends failed", len(group))
            self._fail(group, StoreUnavailable(f"{self._log.path}: {error!r}"))
        else:
            self._failed = None
            for waiting, ack in zip(group, acks, strict=True):
                waiting.future.set_result(ack)
            self._committed()

    def _wait_for_room(self) -> None:
        """Wait while much more is in memory than should be. What the sealer wants of this thread goes on."""
        until_s = time.monotonic() + _LONGEST_WAIT_FOR_ROOM_S
        while not self._heads.wait_for_room(2 * self._settings.head_bytes, _LOOK_S):
            self._do_work()
            problem = self._problem()
            if problem is not None or time.monotonic() > until_s:
                why = problem or "samples come faster than they can be sealed"
                raise StoreUnavailable(f"{self._log.path}: nothing more can be taken in: {why}")

    def _do_work(self) -> None:
        with self._something:
            work, self._work = self._work, []
        for some in work:
            some()

    def _fail(self, group: list[_Waiting], error: StoreError) -> None:
        self._failed = time.monotonic(), str(error)
        for waiting in group:
            waiting.future.set_exception(error)

    def _append(self, group: list[_Waiting]) -> list[CommitAck]:
        """Make durable what is new in a group, and readable."""
        acks = []
        fresh: list[SampleBatch] = []
        names: set[tuple[int, int, int]] = set()
        for waiting in group:
            flags = []
            for batch in waiting.batches:
                name = (batch.run, batch.writer, batch.seq)
                is_fresh = name not in names and batch.seq not in self._log.marks.seen(
                    batch.run, batch.writer
                )
                if is_fresh:
                    names.add(name)
                    fresh.append(batch)
                flags.append(is_fresh)
            acks.append(CommitAck(sum(flags), len(flags) - sum(flags), tuple(flags)))
        if fresh:
            self._heads.add(fresh, self._log.append(fresh))
        return acks
