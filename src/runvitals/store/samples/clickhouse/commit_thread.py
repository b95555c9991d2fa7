"""The threads that store batches.

One gathers them and inserts them together, another stores those that wait on the disk.

While ClickHouse cannot store anything, batches are acknowledged once they are on this machine's disk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from runvitals.store.samples.clickhouse.insertion import Insertion, identity
from runvitals.store.samples.clickhouse.preparation import Preparation
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.clickhouse.settings import ClickHouseSettings
from runvitals.store.samples.clickhouse.waiting_batches import WaitingBatches
from runvitals.store.samples.interface import (
    CommitAck,
    SampleBatch,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from runvitals.store.supervised_thread import SupervisedThread

_MAX_BATCHES = 20_000
_WAITING_BYTES_AT_ONCE = 16 << 20

log = logging.getLogger("runvitals.store")


class _Submission:
    """Batches that were submitted together, and the future of their result."""

    __slots__ = ("batches", "bytes", "future")

    def __init__(self, batches: Sequence[SampleBatch]) -> None:
        self.batches = batches
        self.bytes = sum(batch.values.nbytes for batch in batches)
        self.future: Future[CommitAck] = Future()


class ClickHouseCommits:
    """Stores batches in the order of submission.

    Args:
        clock_us: the time now, µs UTC.

    Attributes:
        thread: inserts what is submitted.
        waiting_thread: inserts what waits on the disk.
        away: why ClickHouse cannot store batches at present; None if it can.
    """

    def __init__(
        self,
        preparation: Preparation,
        insertion: Insertion,
        waiting: WaitingBatches,
        settings: ClickHouseSettings,
        clock_us: Callable[[], int],
    ) -> None:
        self._preparation = preparation
        self._insertion = insertion
        self._waiting = waiting
        self._settings = settings
        self._clock_us = clock_us
        self._changed = threading.Condition()
        self._queue: list[_Submission] = []
        self._queued_bytes = 0
        self._in_progress = 0
        self._version = 0
        self._inserted_s = 0.0
        self.away = preparation.pending
        self._retry = threading.Event()
        self._storing_waiting = threading.Lock()
        self.thread = SupervisedThread("store-committer", self._turn, self._wake, longest_pause_s=5.0)
        self.waiting_thread = SupervisedThread(
            "store-waiting", self._waiting_turn, self._retry.set, longest_pause_s=settings.retry_s
        )

    def start(self) -> None:
        """Start both threads."""
        self.thread.start()
        self.waiting_thread.start()

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Queue batches that have been checked.

        Raises:
            StoreClosed: the thread is closing.
        """
        submission = _Submission(batches)
        if self._preparation.refusal is not None:
            submission.future.set_exception(StoreUnavailable(self._preparation.refusal))
            return submission.future
        with self._changed:
            if self.thread.closing.is_set():
                raise StoreClosed("the store is closed")
            if self._queued_bytes and self._queued_bytes + submission.bytes > self._settings.submitted_bytes:
                submission.future.set_exception(
                    StoreUnavailable("samples arrive faster than ClickHouse can store them")
                )
                return submission.future
            self._queue.append(submission)
            self._queued_bytes += submission.bytes
            self._changed.notify()
        return submission.future

    @property
    def in_memory(self) -> int:
        """Batches that are not durable yet."""
        with self._changed:
            return self._in_progress + sum(len(submission.batches) for submission in self._queue)

    def store_waiting(self) -> None:
        """Store everything that waits on the disk, now, or raise StoreError."""
        self._preparation.check_done()
        while self._store_oldest():
            pass

    def try_again(self) -> None:
        """Let the thread that stores what waits find out at once whether ClickHouse can be used."""
        self._retry.set()

    def close(self) -> None:
        """Store what was submitted, in ClickHouse or on the disk, and end the threads."""
        with self._changed:  # nothing may be queued after the last turn
            self.thread.closing.set()
        self.thread.close()
        self.waiting_thread.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _turn(self) -> bool:
        with self._changed:
            while not self._queue and not self.thread.closing.is_set():
                self._changed.wait()
            if not self._queue:
                return False
        self._gather()
        group = self._take()
        try:
            self._commit(group)
        except Exception as error:
            log.exception("could not store %d appends", len(group))
            for submission in group:
                if not submission.future.done():
                    submission.future.set_exception(StoreUnavailable(repr(error)))
        finally:
            self._in_progress = 0
        return True

    def _gather(self) -> None:
        """Wait until the last INSERT was `gather_s` ago, or there is enough for the next one."""
        until_s = self._inserted_s + self._settings.gather_s
        with self._changed:
            while self._queued_bytes < self._settings.group_bytes and not self.thread.closing.is_set():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return
                self._changed.wait(left_s)

    def _take(self) -> list[_Submission]:
        with self._changed:
            batches = size = count = 0
            for submission in self._queue:
                batches += len(submission.batches)
                size += submission.bytes
                if count and (batches > _MAX_BATCHES or size > self._settings.group_bytes):
                    break
                count += 1
            group, self._queue = self._queue[:count], self._queue[count:]
            self._queued_bytes -= sum(submission.bytes for submission in group)
            self._in_progress = sum(len(submission.batches) for submission in group)
        self._inserted_s = time.monotonic()
        return group

    def _commit(self, group: Sequence[_Submission]) -> None:
        accepted = [self._accept_batch(batch) for submission in group for batch in submission.batches]
        try:
            fresh = self._store(accepted)
        except StoreError as error:
            for submission in group:
                submission.future.set_exception(error)
            return
        start = 0
        for submission in group:
            end = start + len(submission.batches)
            flags = tuple(fresh[start:end])
            submission.future.set_result(CommitAck(sum(flags), len(flags) - sum(flags), flags))
            start = end

    def _accept_batch(self, batch: SampleBatch) -> AcceptedBatch:
        self._version = max(self._version + 1, self._clock_us())
        return AcceptedBatch(self._version, batch)

    def _store(self, accepted: Sequence[AcceptedBatch]) -> Sequence[bool]:
        """Store batches, in ClickHouse if possible, otherwise on the disk. Returns which were new."""
        if not accepted:
            return ()
        if self.away is None:
            try:
                return self._insertion.store(accepted, self._settings.commit_s)
            except StoreError as error:
                log.error("batches wait in %s: %s", self._waiting.path, error)
                self.away = str(error)
        try:
            self._waiting.add(accepted)
        finally:
            self._retry.set()
        # Whether they were stored before is not known until ClickHouse is back; then they are stored once.
        seen = set()
        flags = []
        for _, batch in accepted:
            flags.append(identity(batch) not in seen)
            seen.add(identity(batch))
        return flags

    def _waiting_turn(self) -> bool:
        if self._preparation.pending is None and not len(self._waiting):
            self.away = None
            self._retry.wait()
            self._retry.clear()
        if self.waiting_thread.closing.is_set():
            return False  # what waits is stored after the next start
        try:
            self._preparation.run()
            self._store_oldest()
        except StoreError as error:
            self.away = str(error)
            raise
        self.away = None
        return True

    def _store_oldest(self) -> bool:
        """Store the oldest batches that wait. Returns whether there were any."""
        with self._storing_waiting:
            numbers, batches = self._waiting.oldest(_WAITING_BYTES_AT_ONCE)
            if batches:
                self._insertion.store(batches)
                self.away = None  # before they are removed: with none waiting, repetitions are recognised
            if numbers:
                self._waiting.remove(numbers)
        if not len(self._waiting) and numbers:
            log.info("ClickHouse has stored all batches that waited")
        return bool(numbers)
