"""The files of sealed samples: one for each month (UTC) in which there are any, `samples-2026-10.db`.

Each sample lies in the file of its own month, so that a range finds its files by their names, and dropping a
month is dropping a file.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import lru_cache

import numpy as np

from runvitals.buckets import Integers
from runvitals.store.samples.contract import END_OF_TIME_MS, StoreError
from runvitals.store.samples.sqlite_chunks import database
from runvitals.store.samples.sqlite_chunks import store_id as owner
from runvitals.store.samples.sqlite_chunks.database import Connection, DamagedFile, Format
from runvitals.store.samples.sqlite_chunks.log import NotedMonths

FORMAT = Format(
    application_id=0x52564D31,
    schema="""
    -- t0, t1: of all its samples here; chunks_t1: the last one in a chunk. rolled: a bit for each day of the
    -- month that is in `rollup` whole. seals: since it was compacted, the last one at sealed_ms.
    CREATE TABLE run (run INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,
        chunks_t1 INTEGER, samples INTEGER NOT NULL, rolled INTEGER NOT NULL, seals INTEGER NOT NULL,
        sealed_ms INTEGER NOT NULL);
    CREATE INDEX run_to_compact ON run (sealed_ms) WHERE seals > 0;
    -- One series from t0 to t1; those of a series never overlap. times, data: where they lie.
    CREATE TABLE chunk (run INTEGER, metric INTEGER, t0 INTEGER, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL,
        summary BLOB NOT NULL, times INTEGER NOT NULL, data INTEGER NOT NULL,
        PRIMARY KEY (run, metric, t0)) WITHOUT ROWID;
    -- Times are shared by the chunks of a tick group: so many.
    CREATE TABLE times (id INTEGER PRIMARY KEY, chunks INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE data (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
    -- The samples of a run that are too few for chunks: all metrics together.
    CREATE TABLE pack (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, columns INTEGER NOT NULL,
        t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE INDEX pack_run ON pack (run);
    CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
    -- All chunks and packs of a run on a day (since 1970) together.
    CREATE TABLE rollup (metric INTEGER, day INTEGER, run INTEGER, summary BLOB NOT NULL,
        PRIMARY KEY (metric, day, run)) WITHOUT ROWID;
    CREATE TABLE damaged (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, metric INTEGER, t0 INTEGER NOT NULL,
        t1 INTEGER NOT NULL, ticks INTEGER, times BLOB, data BLOB, reason TEXT NOT NULL)
    """,
)
_NAME = re.compile(r"samples-(\d{4})-(\d\d)\.db(\.damaged-\d+)?")
ASIDE = "damaged or another store's, and set aside"
"""What is said of a file that was set aside."""
MISSING = (
    "was deleted, and its samples are missing: stop the server and put the file back from a backup, or "
    "accept the loss with `runvitals store repair`"
)
"""What is reported of a month's file that was deleted."""
_MOST_OPEN = 8
_EPOCH_YEAR = 1970

log = logging.getLogger("runvitals.store")

Month = int
"""Months since 1970-01."""


def month_of(t_ms: int) -> Month:
    moment = datetime.fromtimestamp(t_ms // 1000, timezone.utc)
    return (moment.year - _EPOCH_YEAR) * 12 + moment.month - 1


@lru_cache(maxsize=4096)
def start_ms(month: Month) -> int:
    year, index = divmod(month, 12)
    if _EPOCH_YEAR + year > 9999:
        return END_OF_TIME_MS
    return int(datetime(_EPOCH_YEAR + year, index + 1, 1, tzinfo=timezone.utc).timestamp()) * 1000


def months_of(t: Integers) -> list[tuple[Month, Integers]]:
    """Which of these times lie in which month.

    Returns:
        months and the indices of their times, in the order in which they were.
    """
    first, last = month_of(int(t.min())), month_of(int(t.max()))
    if first == last:
        return [(first, np.arange(len(t)))]
    found = []
    for month in range(first, last + 1):
        rows = np.flatnonzero((t >= start_ms(month)) & (t < start_ms(month + 1)))
        if len(rows):
            found.append((month, rows))
    return found


class Months:
    """The files of a folder, with connections that are used again.

    One thread writes (`writer`); any number read (`reader`).

    Attributes:
        store_id: of the store that the files belong to (see `owner`); None: not known, and none is refused.
    """

    def __init__(self, folder: str, store_id: str | None = None) -> None:
        self.folder = folder
        self.store_id = store_id
        self._lock = threading.Lock()
        self._writers: dict[Month, sqlite3.Connection] = {}
        self._idle: dict[Month, list[Connection]] = {}
        self._generations: Counter[Month] = Counter()
        self._frozen: list[Month] = []
        self._thawed = threading.Condition(self._lock)
        self._there: set[Month] = set()
        self._aside: set[tuple[Month, str]] = set()
        self._written: set[Month] = set()
        self._lost: set[Month] = set()
        for match in filter(None, map(_NAME.fullmatch, os.listdir(folder))):
            month = (int(match[1]) - _EPOCH_YEAR) * 12 + int(match[2]) - 1
            if match[3]:
                self._aside.add((month, os.path.join(folder, match[0])))
            else:
                self._there.add(month)

    def path(self, month: Month) -> str:
        year, index = divmod(month, 12)
        return os.path.join(self.folder, f"samples-{_EPOCH_YEAR + year:04d}-{index + 1:02d}.db")

    def there(self) -> list[Month]:
        with self._lock:
            return sorted(self._there)

    def aside(self) -> list[tuple[Month, str]]:
        """The damaged files that were set aside: months and paths, in order."""
        with self._lock:
            return sorted(self._aside)

    def expect(self, noted: NotedMonths) -> None:
        """The months that had files when the store was last used, as its log has noted."""
        aside = {month for month, _ in self._aside}
        self._written |= noted.written - aside
        self._lost |= noted.lost

    def noted(self) -> NotedMonths:
        """The months that have or had files, for the log."""
        with self._lock:
            return NotedMonths(frozenset(self._written | self._there), frozenset(self._lost))

    def missing(self) -> list[tuple[Month, str]]:
        """The months whose files were deleted by somebody else, with the files' paths."""
        noted = self.noted()
        return [
            (month, self.path(month))
            for month in sorted(noted.written | noted.lost)
            if month in noted.lost or not os.path.exists(self.path(month))
        ]

    def accept_missing(self) -> list[str]:
        """Expect deleted files no longer; their paths."""
        missing = self.missing()
        with self._lock:
            self._lost.clear()
            self._written.difference_update(month for month, _ in missing)
        return [path for _, path in missing]

    def common_id(self) -> str | None:
        """The id of a store that all files have that have one."""
        found = set()
        for month in self.there():
            with suppress(StoreError), self.reader(month) as connection, database.failing(self.path(month)):
                found.add(owner.of(connection))
        found.discard(None)
        return found.pop() if len(found) == 1 else None

    def covering(self, t0_ms: int, t1_ms: int) -> list[Month]:
        """The months there are that lie, wholly or in part, in a range."""
        return [month for month in self.there() if start_ms(month) <= t1_ms and t0_ms < start_ms(month + 1)]

    def writer(self, month: Month) -> sqlite3.Connection:
        """The connection that writes to a month; its file is made if there is none."""
        with self._lock:
            connection = self._writers.pop(month, None)
            if connection is None:
                self._thawed.wait_for(lambda: month not in self._frozen)
                if month in self._written | self._there and not os.path.exists(self.path(month)):
                    self._lost.add(month)
                connection = database.open_for_writing(self.path(month), FORMAT)
                self._refuse_anothers(connection, month)
                while len(self._writers) >= _MOST_OPEN:
                    self._writers.pop(next(iter(self._writers))).close()
            self._writers[month] = connection  # last used, last closed
            self._there.add(month)
        return connection

    @contextmanager
    def writing(self, month: Month) -> Iterator[sqlite3.Connection]:
        """A transaction in a month's file.

        Raises:
            DamagedFile: the file is of no use: it has been set aside, and the next one will be new.
        """
        try:
            with database.failing(self.path(month)):
                if month in self._writers and not os.path.exists(self.path(month)):
                    self._forget_deleted(month)
                connection = self.writer(month)
                with database.transaction(connection):
                    if self.store_id is not None:
                        owner.stamp(connection, self.store_id)
                    yield connection
        except DamagedFile as error:
            self.set_aside(month, error)
            raise
        except BaseException:
            self.drop_writer(month)  # after a failure it may be of no use
            raise

    def _forget_deleted(self, month: Month) -> None:
        """Write no more to a file that was deleted: that would be lost."""
        with self._lock:
            self._lost.add(month)
        self._let_go(month)
        self._start_generation(month)

    def drop_writer(self, month: Month) -> None:
        """Close the connection that writes to a month: after a failure it may be of no use."""
        with self._lock:
            connection = self._writers.pop(month, None)
        if connection is not None:
            connection.close()

    @contextmanager
    def reader(self, month: Month) -> Iterator[sqlite3.Connection]:
        """A connection on which everything read is of the same moment."""
        connection = self._open(month)
        try:
            with database.snapshot(connection):
                yield connection
        finally:
            self._put_back(month, connection)

    def _open(self, month: Month) -> Connection:
        """A connection to read from. While it is a frozen one, nobody writes to the month."""
        with self._lock:
            idle = self._idle.get(month)
            if idle:
                return idle.pop()
            generation = self._generations[month]
        connection = database.open_for_reading(self.path(month), FORMAT)
        self._refuse_anothers(connection, month)
        connection.generation = generation
        if not connection.frozen:
            return connection
        with self._lock:
            if month not in self._writers:
                self._frozen.append(month)
                return connection
        connection.close()  # a writer came in between: with it, there is what readers need
        return self._open(month)

    def _refuse_anothers(self, connection: sqlite3.Connection, month: Month) -> None:
        """Close a connection to another store's file.

        Raises:
            DamagedFile: it is one: of no use here.
        """
        try:
            with database.failing(self.path(month)):
                stamped = owner.of(connection)
            if owner.is_another(stamped, self.store_id):
                raise DamagedFile(f"{self.path(month)}: it is another store's")
        except BaseException:
            connection.close()
            raise

    def _put_back(self, month: Month, connection: Connection) -> None:
        with self._lock:
            if connection.frozen:
                self._frozen.remove(month)
                self._thawed.notify_all()
            elif (
                connection.generation == self._generations[month]
                and sum(map(len, self._idle.values())) < _MOST_OPEN
            ):
                self._idle.setdefault(month, []).append(connection)
                return
        connection.close()

    def remove(self, month: Month) -> None:
        """Delete a month's file."""
        self._let_go(month)
        database.unlink(self.path(month))
        self._start_generation(month)
        with self._lock:
            self._written.discard(month)
            self._lost.discard(month)

    def set_aside(self, month: Month, reason: Exception) -> None:
        """Rename a month's damaged file: nothing is read from it any longer, and nothing is lost of it."""
        self._let_go(month)
        path = database.set_aside(self.path(month))
        self._start_generation(month)
        with self._lock:
            self._aside.add((month, path))
            self._written.discard(month)
        log.error("%s; it is now %s, and the rest is served: `runvitals store repair`", reason, path)

    def forget_aside(self, path: str, into: str) -> str:
        """Give a file that was set aside a name that is not looked for; the one it has then."""
        database.rename(path, into)
        with self._lock:
            self._aside = {one for one in self._aside if one[1] != path}
        return into

    def remove_aside(self, month: Month) -> None:
        """Delete the files of a month that were set aside."""
        for of, path in self.aside():
            if of == month and os.path.isfile(path):
                database.unlink(path)
                with self._lock:
                    self._aside.discard((of, path))

    def _let_go(self, month: Month) -> None:
        """Close what is open of a month but for what readers are using."""
        with self._lock:
            self._there.discard(month)
            unused = self._idle.pop(month, [])
            writer = self._writers.pop(month, None)
        for connection in (*unused, *filter(None, [writer])):
            connection.close()

    def _start_generation(self, month: Month) -> None:
        """The month's file is gone: no connection that was opened before may be used again.

        A connection that was opened while the file was being deleted is of the old generation as well.
        """
        with self._lock:
            self._generations[month] += 1
            unused = self._idle.pop(month, [])
        for connection in unused:
            connection.close()

    def size(self) -> int:
        """Bytes on disk."""
        paths = [*map(self.path, self.there()), *(path for _, path in self.aside())]
        return sum(map(database.size, paths))

    def close(self) -> None:
        with self._lock:
            idle = [connection for some in self._idle.values() for connection in some]
            self._idle.clear()
        # Readers first: the last one to close a file tidies up after it, and only a writer can.
        for connection in (*idle, *self._writers.values()):
            connection.close()
        self._writers.clear()
