"""Month files: the sealed samples of each month (UTC), `samples-2026-10.db`.

A time range determines its files by name, and deleting a month means deleting a file.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from functools import lru_cache

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.store import sqlite_salvage
from runvitals.store.samples.cold import rows as cold_rows
from runvitals.store.samples.cold.reading import ColdReader
from runvitals.store.samples.interface import END_OF_TIME_MS, StoreError
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite import store_id as owner
from runvitals.store.samples.sqlite.database import DamagedFile, FileConnection, Format
from runvitals.store.samples.sqlite.log import RecordedMonths

FORMAT = Format(
    application_id=0x52564D31,
    schema="""
    -- t0, t1: first and last sample in this file; chunks_t1: last sample in a chunk. rolled: a bit for each
    -- day that is in `rollup`. seals: number of seals since compaction, the last one at sealed_ms.
    CREATE TABLE run (run INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,
        chunks_t1 INTEGER, samples INTEGER NOT NULL, rolled INTEGER NOT NULL, seals INTEGER NOT NULL,
        sealed_ms INTEGER NOT NULL);
    CREATE INDEX run_to_compact ON run (sealed_ms) WHERE seals > 0;
    -- One series from t0 to t1; chunks of a series never overlap. times, data: ids of rows in these tables.
    CREATE TABLE chunk (run INTEGER, metric INTEGER, t0 INTEGER, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL,
        summary BLOB NOT NULL, times INTEGER NOT NULL, data INTEGER NOT NULL,
        PRIMARY KEY (run, metric, t0)) WITHOUT ROWID;
    -- Times that chunks share; chunks: how many.
    CREATE TABLE times (id INTEGER PRIMARY KEY, chunks INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE data (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
    -- Samples of a run that are too few for chunks: all metrics in one row.
    CREATE TABLE pack (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, columns INTEGER NOT NULL,
        t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE INDEX pack_run ON pack (run);
    CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
    -- Summary of all chunks and packs of a run on a day (days since 1970).
    CREATE TABLE rollup (metric INTEGER, day INTEGER, run INTEGER, summary BLOB NOT NULL,
        PRIMARY KEY (metric, day, run)) WITHOUT ROWID;
    CREATE TABLE damaged (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, metric INTEGER, t0 INTEGER NOT NULL,
        t1 INTEGER NOT NULL, ticks INTEGER, times BLOB, data BLOB, reason TEXT NOT NULL)
    """,
    optional=1,  # see `cold.rows`
)
_NAME = re.compile(r"samples-((?!0000)\d{4})-(0[1-9]|1[0-2])\.db(\.damaged-\d+)?", re.ASCII)
SET_ASIDE = "damaged or belongs to another store, and was set aside"
"""Reported of a file that was set aside."""
MISSING = (
    "was deleted, and its samples are missing: stop the server and restore the file from a backup, or accept "
    "the loss with `runvitals store repair`"
)
"""Reported of a month file that was deleted."""
_MAX_OPEN = 8
_EPOCH_YEAR = 1970

log = logging.getLogger("runvitals.store")

Month = int
"""MonthFiles since 1970-01."""


def month_of(t_ms: int) -> Month:
    """Return the month of a time."""
    moment = datetime.fromtimestamp(t_ms // 1000, timezone.utc)
    return (moment.year - _EPOCH_YEAR) * 12 + moment.month - 1


@lru_cache(maxsize=4096)
def start_ms(month: Month) -> int:
    """Return when a month begins, ms UTC."""
    year, index = divmod(month, 12)
    if _EPOCH_YEAR + year > 9999:
        return END_OF_TIME_MS
    return int(datetime(_EPOCH_YEAR + year, index + 1, 1, tzinfo=timezone.utc).timestamp()) * 1000


def months_of(t: Integers) -> list[tuple[Month, Integers]]:
    """Split times by month.

    Returns:
        months, and the indices of their times in `t`.
    """
    first, last = month_of(int(t.min())), month_of(int(t.max()))
    if first == last:
        return [(first, np.arange(len(t)))]
    indices = []
    for month in range(first, last + 1):
        rows = np.flatnonzero((t >= start_ms(month)) & (t < start_ms(month + 1)))
        if len(rows):
            indices.append((month, rows))
    return indices


class MonthFiles:
    """The month files of a folder, with pools of connections.

    One thread writes (`writer`); any number read (`reader`).

    Attributes:
        store_id: id of the store (see `store_id`); files of other stores are rejected. None: unknown, and all
            files are accepted.
        cold, cold_for_writer: read the values of cold chunks, for readers and for the writer.
        removing: called before a file is deleted, with the objects of cold storage that it refers to.
    """

    def __init__(self, folder: str, store_id: str | None = None) -> None:
        self.folder = folder
        self.store_id = store_id
        self.cold: ColdReader | None = None
        self.cold_for_writer: ColdReader | None = None
        self.removing: Callable[[Collection[str]], None] = lambda digests: None
        self._lock = threading.Lock()
        self._writers: dict[Month, FileConnection] = {}
        self._idle: dict[Month, list[FileConnection]] = {}
        self._generations: Counter[Month] = Counter()
        self._immutable: list[Month] = []
        self._no_immutable = threading.Condition(self._lock)
        self._existing: set[Month] = set()
        self._aside: set[tuple[Month, str]] = set()
        self._written: set[Month] = set()
        self._lost: set[Month] = set()
        for match in filter(None, map(_NAME.fullmatch, os.listdir(folder))):
            month = (int(match[1]) - _EPOCH_YEAR) * 12 + int(match[2]) - 1
            if match[3]:
                self._aside.add((month, os.path.join(folder, match[0])))
            else:
                self._existing.add(month)

    def path(self, month: Month) -> str:
        """Return the path of a month's file."""
        year, index = divmod(month, 12)
        return os.path.join(self.folder, f"samples-{_EPOCH_YEAR + year:04d}-{index + 1:02d}.db")

    def existing(self) -> list[Month]:
        """Return the months that have a file."""
        with self._lock:
            return sorted(self._existing)

    def set_aside_files(self) -> list[tuple[Month, str]]:
        """Return the files that were set aside: months and paths, in order."""
        with self._lock:
            return sorted(self._aside)

    def expect(self, recorded: RecordedMonths) -> None:
        """Set the months that had files when the store was last used, from its log."""
        aside = {month for month, _ in self._aside}
        self._written |= recorded.written - aside
        self._lost |= recorded.lost

    def recorded_months(self) -> RecordedMonths:
        """Return the months that have or had files, to be recorded in the log."""
        with self._lock:
            return RecordedMonths(frozenset(self._written | self._existing), frozenset(self._lost))

    def missing(self) -> list[tuple[Month, str]]:
        """Return the months whose files were deleted by another program, with the paths of the files."""
        recorded = self.recorded_months()
        return [
            (month, self.path(month))
            for month in sorted(recorded.written | recorded.lost)
            if month in recorded.lost or not os.path.exists(self.path(month))
        ]

    def accept_missing(self) -> list[str]:
        """Stop reporting deleted files. Returns their paths."""
        missing = self.missing()
        with self._lock:
            self._lost.clear()
            self._written.difference_update(month for month, _ in missing)
        return [path for _, path in missing]

    def common_id(self) -> str | None:
        """Return the store id of the files; None if no file has one, or they differ."""
        ids = set()
        for month in self.existing():
            with (
                suppress(StoreError),
                self.reader(month) as connection,
                database.store_errors(self.path(month)),
            ):
                ids.add(owner.read(connection))
        ids.discard(None)
        return ids.pop() if len(ids) == 1 else None

    def covering(self, t0_ms: int, t1_ms: int) -> list[Month]:
        """Return the existing months that overlap a range."""
        return [
            month for month in self.existing() if start_ms(month) <= t1_ms and t0_ms < start_ms(month + 1)
        ]

    def writer(self, month: Month) -> sqlite3.Connection:
        """Return the connection that writes to a month; creates the file if it does not exist."""
        with self._lock:
            connection = self._writers.pop(month, None)
            if connection is None:
                self._no_immutable.wait_for(lambda: month not in self._immutable)
                if month in self._written | self._existing and not os.path.exists(self.path(month)):
                    self._lost.add(month)
                connection = database.open_for_writing(self.path(month), FORMAT)
                connection.cold = self.cold_for_writer
                self._check_owner(connection, month)
                while len(self._writers) >= _MAX_OPEN:
                    self._writers.pop(next(iter(self._writers))).close()
            self._writers[month] = connection  # the least recently used one is closed first
            self._existing.add(month)
        return connection

    @contextmanager
    def writing(self, month: Month) -> Iterator[sqlite3.Connection]:
        """A transaction in a month file.

        Raises:
            DamagedFile: the file was set aside; the next write creates a new one.
        """
        try:
            with database.store_errors(self.path(month)):
                if month in self._writers and not os.path.exists(self.path(month)):
                    self._abandon_deleted(month)
                connection = self.writer(month)
                with database.transaction(connection):
                    if self.store_id is not None:
                        owner.stamp(connection, self.store_id)
                    yield connection
        except DamagedFile as error:
            self.set_aside(month, error)
            raise
        except BaseException:
            self.drop_writer(month)  # the connection may be unusable after a failure
            raise

    def _abandon_deleted(self, month: Month) -> None:
        """Stop writing to a file that was deleted: the samples would be lost."""
        with self._lock:
            self._lost.add(month)
        self._close_connections(month)
        self._start_generation(month)

    def drop_writer(self, month: Month) -> None:
        """Close the connection that writes to a month: it may be unusable after a failure."""
        with self._lock:
            connection = self._writers.pop(month, None)
        if connection is not None:
            connection.close()

    @contextmanager
    def reader(self, month: Month) -> Iterator[sqlite3.Connection]:
        """A connection in a read transaction: all reads see the same state."""
        connection = self._open(month)
        connection.cold = self.cold
        try:
            with database.snapshot(connection):
                yield connection
        finally:
            self._put_back(month, connection)

    def _open(self, month: Month) -> FileConnection:
        """Return a connection for reading. While it is immutable, the month is not written to."""
        with self._lock:
            idle = self._idle.get(month)
            if idle:
                return idle.pop()
            generation = self._generations[month]
        connection = database.open_for_reading(self.path(month), FORMAT)
        self._check_owner(connection, month)
        connection.generation = generation
        if not connection.immutable:
            return connection
        with self._lock:
            if month not in self._writers:
                self._immutable.append(month)
                return connection
        connection.close()  # a writer has opened the file meanwhile: open an ordinary connection
        return self._open(month)

    def _check_owner(self, connection: sqlite3.Connection, month: Month) -> None:
        """Check that a file belongs to this store; otherwise close the connection.

        Raises:
            DamagedFile: it belongs to another store.
        """
        try:
            with database.store_errors(self.path(month)):
                stamped = owner.read(connection)
            if owner.is_another(stamped, self.store_id):
                raise DamagedFile(f"{self.path(month)}: the file belongs to another store")
        except BaseException:
            connection.close()
            raise

    def _put_back(self, month: Month, connection: FileConnection) -> None:
        with self._lock:
            if connection.immutable:
                self._immutable.remove(month)
                self._no_immutable.notify_all()
            elif (
                connection.generation == self._generations[month]
                and sum(map(len, self._idle.values())) < _MAX_OPEN
            ):
                self._idle.setdefault(month, []).append(connection)
                return
        connection.close()

    def remove(self, month: Month) -> None:
        """Delete a month file."""
        try:
            with self.reader(month) as connection, database.store_errors(self.path(month)):
                self._note_objects(cold_rows.objects(connection))
        except StoreError as error:
            log.error("%s: what it has in cold storage stays there: %s", self.path(month), error)
        self._close_connections(month)
        database.unlink(self.path(month))
        self._start_generation(month)
        with self._lock:
            self._written.discard(month)
            self._lost.discard(month)

    def set_aside(self, month: Month, reason: Exception) -> None:
        """Rename a damaged month file: it is no longer read, and kept for `repair`."""
        self._close_connections(month)
        path = database.set_aside(self.path(month))
        self._start_generation(month)
        with self._lock:
            self._aside.add((month, path))
            self._written.discard(month)
        log.error("%s; the file was renamed to %s; run `runvitals store repair`", reason, path)

    def rename_set_aside(self, path: str, into: str) -> str:
        """Rename a file that was set aside, so that it is no longer reported. Returns the new path."""
        database.rename(path, into)
        with self._lock:
            self._aside = {(month, other) for month, other in self._aside if other != path}
        return into

    def remove_aside(self, month: Month) -> None:
        """Delete the files of a month that were set aside."""
        for other_month, path in self.set_aside_files():
            if other_month == month and os.path.isfile(path):
                with closing(sqlite_salvage.open_damaged(path)) as connection:
                    self._note_objects([row["sha256"] for row in sqlite_salvage.rows(connection, "object")])
                database.unlink(path)
                with self._lock:
                    self._aside.discard((month, path))

    def _note_objects(self, digests: list[str]) -> None:
        if digests:
            self.removing(digests)

    def _close_connections(self, month: Month) -> None:
        """Close the connections to a month file, except those in use by readers."""
        with self._lock:
            self._existing.discard(month)
            unused = self._idle.pop(month, [])
            writer = self._writers.pop(month, None)
        for connection in (*unused, *filter(None, [writer])):
            connection.close()

    def _start_generation(self, month: Month) -> None:
        """Prevent the reuse of connections to a deleted file, including those opened during its deletion."""
        with self._lock:
            self._generations[month] += 1
            unused = self._idle.pop(month, [])
        for connection in unused:
            connection.close()

    def size(self) -> int:
        """Size on disk in bytes, without what is in cold storage."""
        paths = [*map(self.path, self.existing()), *(path for _, path in self.set_aside_files())]
        return sum(map(database.size, paths))

    def cold_bytes(self) -> int:
        """Size of what is in cold storage, as far as the files can be read."""
        size = 0
        for month in self.existing():
            with (
                suppress(StoreError),  # reported by `stats`
                self.reader(month) as connection,
                database.store_errors(self.path(month)),
            ):
                size += cold_rows.used_bytes(connection)
        return size

    def close(self) -> None:
        """Close all connections that are not in use."""
        with self._lock:
            idle = [connection for connections in self._idle.values() for connection in connections]
            self._idle.clear()
        # Readers first: the last connection to close a file checkpoints it, which only a writer can.
        for connection in (*idle, *self._writers.values()):
            connection.close()
        self._writers.clear()
