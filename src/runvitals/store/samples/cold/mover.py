"""The background thread of cold storage.

It moves old chunks there, fetches what other threads want to read, and removes objects that are not needed
any more.

It waits for the bucket, so no other thread has to. What it changes in month files and the log, it lets the
threads do that own them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from runvitals.model.durations import DAY_MS
from runvitals.store.samples.cold import noted_objects, objects, rows
from runvitals.store.samples.cold.rows import LocalChunk
from runvitals.store.samples.cold.storage import ColdStorage
from runvitals.store.samples.interface import StoreUnavailable
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.log import Log
from runvitals.store.samples.sqlite.month_files import Month, MonthFiles, start_ms
from runvitals.store.supervised_thread import SupervisedThread

if TYPE_CHECKING:
    from runvitals.store.samples.sqlite.maintenance_thread import MaintenanceThread

KEPT_MS = 7 * DAY_MS
"""Objects that no chunk needs any more are kept this long: a backup of this age can be restored."""
_EVERY_S = 600.0
_MAX_PAUSE_S = 60.0
_CLOSE_WAIT_S = 5.0
_FIRST = (-1, -1)
_PAGE_BYTES = 4096

T = TypeVar("T")
log = logging.getLogger("runvitals.store")


class ColdMover:
    """The thread that moves chunks to cold storage and reads them from there.

    Args:
        owner: changes month files; has the thread that changes the log.
        clock_ms: the time now, ms UTC.
    """

    def __init__(
        self, storage: ColdStorage, months: MonthFiles, owner: MaintenanceThread, clock_ms: Callable[[], int]
    ) -> None:
        self._storage = storage
        self._months = months
        self._owner = owner
        self._clock_ms = clock_ms
        self._moves = storage.settings.after_ms is not None
        self._due_s = 0.0
        self._working = threading.Lock()
        self._event = threading.Event()
        self.thread = SupervisedThread(
            "store-cold", self._turn, self._event.set, longest_pause_s=_MAX_PAUSE_S
        )
        storage.wake = self._event.set

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def close(self) -> None:
        """End the thread. If the bucket does not answer, this does not wait for it."""
        self.thread.close(_CLOSE_WAIT_S)

    def _turn(self) -> bool:
        if self.thread.problem is None:
            self._event.wait(max(0.0, self._due_s - time.monotonic()) if self._moves else None)
        self._event.clear()
        if self.thread.closing.is_set():
            return False
        if self._storage.problem is not None:
            self._storage.check()  # again and again until it succeeds
        self._storage.fetch_requested()
        if self._moves and time.monotonic() >= self._due_s:
            self.move()
            self.remove_unused()
            self._due_s = time.monotonic() + _EVERY_S
        return not self.thread.closing.is_set()

    def _call_log(self, work: Callable[[Log], T]) -> T:
        return self._owner.commit_thread.call(work)

    # Moving

    def move(self) -> int:
        """Move the chunks that are old enough. Returns how many objects were made.

        Raises:
            StoreError: an object could not be stored; what was moved before stays moved.
        """
        after_ms = self._storage.settings.after_ms
        assert after_ms is not None
        before_ms = self._clock_ms() - after_ms
        months = [month for month in self._months.existing() if start_ms(month) < before_ms]
        with self._working:
            return sum(self._move_month(month, before_ms) for month in months)

    def _move_month(self, month: Month, before_ms: int) -> int:
        is_over = start_ms(month + 1) <= before_ms
        chunks: list[LocalChunk] = []
        size = moved = 0
        for run in self._old_runs(month, before_ms):
            after = _FIRST
            while local_chunks := self._local_chunks(month, run, before_ms, after, size):
                if self.thread.closing.is_set():
                    return moved
                after = local_chunks[-1].chunk.metric, local_chunks[-1].chunk.t0
                chunks += local_chunks
                size += sum(len(local.values) for local in local_chunks)
                if size >= self._storage.settings.object_bytes:
                    moved += self._move_to_object(month, chunks)
                    chunks, size = [], 0
        # Not before the month is over, because each pass would make a small object.
        if chunks and is_over:
            moved += self._move_to_object(month, chunks)
        if moved:
            self._owner.call(lambda: self._release(month))
        return moved

    def _release(self, month: Month) -> None:
        """Return what has become free to the file system."""
        if month in self._months.existing():
            with database.store_errors(self._months.path(month)):
                database.release_free_pages(self._months.writer(month))

    def _old_runs(self, month: Month, before_ms: int) -> list[int]:
        if month not in self._months.existing():
            return []
        with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
            return rows.old_runs(connection, before_ms)

    def _local_chunks(
        self, month: Month, run: int, before_ms: int, after: tuple[int, int], size: int
    ) -> list[LocalChunk]:
        if month not in self._months.existing():
            return []
        max_bytes = self._storage.settings.object_bytes - size
        with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
            return rows.local_chunks(connection, run, before_ms, after, max_bytes)

    def _move_to_object(self, month: Month, chunks: Sequence[LocalChunk]) -> int:
        """Move chunks into one object. Returns 1, or 0 if all of them have changed meanwhile."""
        path = self._storage.new_path()
        try:
            sha256, size, offsets = self._write(path, chunks)
            now_ms = self._clock_ms()
            self._call_log(lambda log: noted_objects.note(log, [sha256], now_ms))
            self._storage.put(sha256, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)
        moved = 0

        def refer() -> None:
            nonlocal moved
            moved = self._refer(month, sha256, size, list(zip(chunks, offsets, strict=True)))

        self._owner.call(refer)
        if not moved:
            return 0
        self._call_log(lambda log: noted_objects.forget(log, [sha256]))
        return 1

    def _write(self, path: str, chunks: Sequence[LocalChunk]) -> tuple[str, int, list[int]]:
        """See `objects.write`; raise StoreUnavailable if the disk is full, or fails."""
        try:
            return objects.write(path, self._months.store_id, chunks)
        except OSError as error:
            raise StoreUnavailable(f"could not write {path}: {error.strerror}") from error

    def _refer(self, month: Month, sha256: str, size: int, placed: Sequence[tuple[LocalChunk, int]]) -> int:
        if month not in self._months.existing():
            return 0
        with self._months.writing(month) as connection:
            moved = rows.move(connection, sha256, size, placed)
            if not moved:
                rows.remove_unused(connection, [sha256])
        with database.store_errors(self._months.path(month)):
            database.release_some_pages(self._months.writer(month), 2 * size // _PAGE_BYTES)
        return moved

    # Removing

    def note_removed(self, digests: Collection[str]) -> None:
        """Note the objects of a month file that is about to be deleted."""
        now_ms = self._clock_ms()
        self._call_log(lambda log: noted_objects.note(log, digests, now_ms))

    def remove_unused(self) -> int:
        """Note unused objects; remove and count those noted a week ago, or raise StoreError."""
        with self._working:
            return self._remove_unused()

    def _remove_unused(self) -> int:
        if self._months.set_aside_files() or self._months.missing():
            return 0  # they may need them: wait until they were repaired
        for month in self._months.existing():
            self._note_unused(month)
        until_ms = self._clock_ms() - KEPT_MS
        noted = set(self._call_log(lambda log: noted_objects.noted_before(log, until_ms)))
        removed = noted.difference(*map(self._objects_of, self._months.existing()))
        if removed:
            self._storage.remove(sorted(removed))
            log.info("removed samples from cold storage", extra={"fields": {"objects": len(removed)}})
        if noted:
            self._call_log(lambda log: noted_objects.forget(log, noted))
        return len(removed)

    def _note_unused(self, month: Month) -> None:
        with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
            unused = rows.unused_objects(connection)
        if unused:
            now_ms = self._clock_ms()
            self._call_log(lambda log: noted_objects.note(log, unused, now_ms))
            self._owner.call(lambda: self._remove_rows(month, unused))

    def _remove_rows(self, month: Month, unused: Sequence[str]) -> None:
        if month in self._months.existing():
            with self._months.writing(month) as connection:
                rows.remove_unused(connection, unused)

    def _objects_of(self, month: Month) -> set[str]:
        with self._months.reader(month) as connection, database.store_errors(self._months.path(month)):
            return set(rows.objects(connection))
