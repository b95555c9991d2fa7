"""The thread that makes batches durable, with group commit: batches that wait share the next commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from runvitals.store.samples.interface import (
    CommitAck,
    SampleBatch,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from runvitals.store.samples.sqlite.head import Heads
from runvitals.store.samples.sqlite.log import Log
from runvitals.store.samples.sqlite.settings import StoreSettings
from runvitals.store.supervised_thread import SupervisedThread

_MAX_BATCHES = 1024
_MAX_BYTES = 16 << 20
_POLL_S = 0.0005
_MAX_WAIT_FOR_ROOM_S = 30.0
_FAILURE_REPORTED_S = 60.0
_MAX_PAUSE_S = 5.0
_CHECK_EVERY_S = 0.02

T = TypeVar("T")
log = logging.getLogger("runvitals.store")


class _Submission:
    """Batches that were submitted together, and the future of their result."""

    __slots__ = ("batches", "future")

    def __init__(self, batches: Sequence[SampleBatch]) -> None:
        self.batches = batches
        self.future: Future[CommitAck] = Future()


class CommitThread:
    """The only thread that writes to the log.

    Args:
        heads: durable batches are added to them, to be read.
        on_commit: called after each commit.
        problem: returns why nothing can be sealed at present, if so.
    """

    def __init__(
        self,
        log: Log,
        heads: Heads,
        settings: StoreSettings,
        on_commit: Callable[[], None],
        problem: Callable[[], str | None],
    ) -> None:
        self._log = log
        self._heads = heads
        self._settings = settings
        self._on_commit = on_commit
        self._problem = problem
        self._changed = threading.Condition()
        self._queue: list[_Submission] = []
        self._calls: list[Callable[[], None]] = []
        self._idle = True
        self._last_group = 0
        self._failed: tuple[float, str] | None = None
        self.thread = SupervisedThread(
            "store-committer", self._turn, self._wake, longest_pause_s=_MAX_PAUSE_S
        )

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Queue batches that have been checked.

        Raises:
            StoreClosed: the thread is closing.
        """
        submission = _Submission(batches)
        with self._changed:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._queue.append(submission)
            if self._idle:
                self._changed.notify()
        return submission.future

    def call(self, work: Callable[[Log], T]) -> T:
        """Run a function on the log in this thread, between commits. Returns its result.

        Raises:
            StoreClosed: the thread is closing; and what `work` raises.
        """
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work(self._log))
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                future.set_exception(error)

        with self._changed:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            self._calls.append(run)
            self._changed.notify()
        return future.result()

    @property
    def problem(self) -> str | None:
        """Why the last commit failed; None as well if nothing was submitted for a while."""
        problem = self._log.problem()
        if problem is not None:
            return problem
        failed = self._failed
        # Clients may wait until the server is ready, so the failure must expire without another commit.
        return (
            failed[1] if failed is not None and time.monotonic() - failed[0] < _FAILURE_REPORTED_S else None
        )

    @property
    def waiting(self) -> int:
        """Batches that are not durable yet."""
        with self._changed:
            return sum(len(submission.batches) for submission in self._queue)

    def close(self) -> None:
        """Commit the queued batches and end the thread."""
        with self._changed:  # nothing may be queued after the last commit
            self.thread.closing.set()
        self.thread.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _turn(self) -> bool:
        with self._changed:
            while not (self._queue or self._calls or self.thread.closing.is_set()):
                self._idle = True
                self._changed.wait()
            self._idle = False
            last_turn = self.thread.closing.is_set() and not self._queue
        self._run_calls()
        if last_turn:
            return False
        group = self._collect()
        if group:
            self._commit(group)
        return True

    def _collect(self) -> list[_Submission]:
        """Take submissions from the queue: as many as the last group had, if they arrive soon enough.

        Clients that wait for a response before they send again all return shortly after the first one. A
        single writer does not wait.
        """
        until_s = time.monotonic() + self._settings.group_wait_s
        while (
            0 < len(self._queue) < self._last_group
            and not self.thread.closing.is_set()
            and time.monotonic() < until_s
        ):
            time.sleep(_POLL_S)
        with self._changed:
            batches = size = count = 0
            for submission in self._queue:
                batches += len(submission.batches)
                size += sum(batch.values.nbytes for batch in submission.batches)
                if count and (batches > _MAX_BATCHES or size > _MAX_BYTES):
                    break
                count += 1
            group, self._queue = self._queue[:count], self._queue[count:]
        if group:
            self._last_group = len(group)
        return group

    def _commit(self, group: list[_Submission]) -> None:
        try:
            self._wait_for_room()
            acks = self._append(group)
        except StoreError as error:
            if self._failed is None or str(error) != self._failed[1]:  # logged once per problem
                log.error("could not commit %d appends: %s", len(group), error)
            self._fail(group, error)
        except Exception as error:
            log.exception("could not commit %d appends", len(group))
            self._fail(group, StoreUnavailable(f"{self._log.path}: {error!r}"))
        else:
            self._failed = None
            for submission, ack in zip(group, acks, strict=True):
                submission.future.set_result(ack)
            self._on_commit()

    def _wait_for_room(self) -> None:
        """Wait while the heads take too much memory. Runs the maintenance thread's calls meanwhile."""
        until_s = time.monotonic() + _MAX_WAIT_FOR_ROOM_S
        while not self._heads.wait_for_room(2 * self._settings.head_bytes, _CHECK_EVERY_S):
            self._run_calls()
            problem = self._problem()
            if problem is not None or time.monotonic() > until_s:
                reason = problem or "samples arrive faster than they can be sealed"
                raise StoreUnavailable(f"{self._log.path}: could not store more samples: {reason}")

    def _run_calls(self) -> None:
        with self._changed:
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def _fail(self, group: list[_Submission], error: StoreError) -> None:
        self._failed = time.monotonic(), str(error)
        for submission in group:
            submission.future.set_exception(error)

    def _append(self, group: list[_Submission]) -> list[CommitAck]:
        """Append the new batches of a group to the log, and make them readable."""
        acks = []
        fresh: list[SampleBatch] = []
        identities: set[tuple[int, int, int]] = set()
        for submission in group:
            flags = []
            for batch in submission.batches:
                identity = (batch.run, batch.writer, batch.seq)
                is_fresh = identity not in identities and not self._log.stored_batches.contains(*identity)
                if is_fresh:
                    identities.add(identity)
                    fresh.append(batch)
                flags.append(is_fresh)
            acks.append(CommitAck(sum(flags), len(flags) - sum(flags), tuple(flags)))
        if fresh:
            self._heads.add(fresh, self._log.append(fresh))
        return acks
