"""The log: what was appended and is not in chunks yet, one row for all batches of a commit.

Each row is a CRC-32 and then, for every batch, its run, writer, number and set of columns, and its times and
values packed as the client sent them (`runvitals.model.batch_body`). Rows whose batches are all sealed are
deleted from the front; the last row always stays, emptied, so that numbers are never used twice.

One thread uses a log; only the committer does.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from runvitals.model import batch_body
from runvitals.store.open_file_identity import OpenedFile
from runvitals.store.samples.contract import SampleBatch, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite_chunks import database
from runvitals.store.samples.sqlite_chunks.column_sets import Columns, add_columns, read_columns
from runvitals.store.samples.sqlite_chunks.database import Format
from runvitals.store.samples.sqlite_chunks.stored_batches import Marks

NAME = "log.db"
_PAIRING = """
    -- The catalogue that the store's numbers come from: no row, or one (see `runvitals.store.pairing`).
    CREATE TABLE pairing (id TEXT NOT NULL, starts INTEGER NOT NULL, catalogue TEXT NOT NULL)"""


def _add_pairing(connection: sqlite3.Connection) -> None:
    connection.execute(_PAIRING)


FORMAT = Format(
    application_id=0x52564C31,
    schema="""
    CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
    CREATE TABLE log (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
    -- Batches that were stored: numbers of a writer without a hole. Lags behind the log.
    CREATE TABLE mark (run INTEGER, writer INTEGER, first INTEGER, last INTEGER NOT NULL,
        PRIMARY KEY (run, writer, first)) WITHOUT ROWID;
    -- Rows of the log up to this one hold nothing of the run that is not in chunks.
    CREATE TABLE sealed (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    -- Nor anything that was not deleted; done: its chunks are deleted as well.
    CREATE TABLE deleted (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, done INTEGER NOT NULL);
    CREATE TABLE damaged (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
    """
    + _PAIRING,
    migrations=[_add_pairing],
    readable_from=1,
)
_BATCH = struct.Struct("<QQQII")
_CHECKSUM = struct.Struct("<I")
EMPTY = _CHECKSUM.pack(zlib.crc32(b""))
"""A row of no batches."""
_MOST_TRIMMED_BYTES = 16 << 20

log = logging.getLogger("runvitals.store")


class Pairing(NamedTuple):
    """What a store and its catalogue both say, so that each is known to the other.

    Args:
        id: of both.
        starts: how often a server has used the two together; the catalogue's is never the smaller one.
        catalogue: its name, without a password.
    """

    id: str
    starts: int
    catalogue: str


def read_pairing(connection: sqlite3.Connection) -> Pairing | None:
    """What a log says of its catalogue; None: nothing yet."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='pairing'").fetchone():
        return None  # of format 1
    row = connection.execute("SELECT id, starts, catalogue FROM pairing").fetchone()
    return None if row is None else Pairing(*row)


class NotedMonths(NamedTuple):
    """Which months have files, so that it is noticed when one is deleted.

    Args:
        written: months that have, or had, a file.
        lost: those whose file was deleted and has been made anew since.
    """

    written: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


def read_months(connection: sqlite3.Connection) -> NotedMonths:
    """The months that a log has noted; none in a log of an older version."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='month'").fetchone():
        return NotedMonths()
    rows = connection.execute("SELECT month, lost FROM month").fetchall()
    return NotedMonths(
        frozenset(month for month, _ in rows), frozenset(month for month, lost in rows if lost)
    )


class Log:
    """The log of a folder.

    Raises:
        StoreError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = database.open_for_writing(path, FORMAT)
        self._file = OpenedFile(path)
        with database.failing(path):
            self.marks = Marks(self.connection)
            self._columns = {
                metrics: column_id for column_id, metrics in read_columns(self.connection).items()
            }
            self._rows: deque[tuple[int, int]] = deque(
                self.connection.execute("SELECT seq, length(batches) FROM log ORDER BY seq")
            )
            self._sealed: dict[int, int] = {}
            self.last_seq = self._rows[-1][0] if self._rows else 0
            self.bytes = sum(size for _, size in self._rows)
            self.pairing = read_pairing(self.connection)
            self.months = read_months(self.connection)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever appended."""
        return not self.last_seq

    def problem(self) -> str | None:
        """Why nothing that is appended would last: the file was deleted or replaced. For any thread."""
        return self._file.problem()

    def highest(self) -> tuple[int, int]:
        """The highest number of a run or writer, and of a metric, that the log knows of."""
        with database.failing(self.path):
            of_marks = self.connection.execute("SELECT max(run), max(writer) FROM mark").fetchone()
        runs = [number for number in (*of_marks, *self._sealed) if number is not None]
        return max(runs, default=0), max((max(some) for some in self._columns if some), default=0)

    def pair(self, pairing: Pairing) -> None:
        """Note the catalogue that the store's numbers come from."""
        with database.failing(self.path), database.transaction(self.connection):
            self.connection.execute("DELETE FROM pairing")
            self.connection.execute("INSERT INTO pairing VALUES (?, ?, ?)", pairing)
        self.pairing = pairing

    def note_months(self, months: NotedMonths) -> None:
        """Replace what is noted of the months' files."""
        with database.failing(self.path), database.transaction(self.connection):
            # Not in the format: older versions can read and write a file that has this table.
            self.connection.execute(
                "CREATE TABLE IF NOT EXISTS month (month INTEGER PRIMARY KEY, lost INTEGER NOT NULL)"
            )
            self.connection.execute("DELETE FROM month")
            rows = [(month, month in months.lost) for month in months.written]
            self.connection.executemany("INSERT INTO month VALUES (?, ?)", rows)
        self.months = months

    def unsealed(self) -> Iterator[tuple[int, list[SampleBatch]]]:
        """Rows of the log with the batches that are in no chunk yet. All batches are noted as seen."""
        with database.failing(self.path):
            upto = dict(self.connection.execute("SELECT run, seq FROM sealed"))
            for run, seq in self.connection.execute("SELECT run, seq FROM deleted"):
                upto[run] = max(seq, upto.get(run, 0))
            deleted = dict(self.connection.execute("SELECT run, seq FROM deleted"))
            columns = {column_id: metrics for metrics, column_id in self._columns.items()}
            for seq, _ in list(self._rows):
                (packed,) = self.connection.execute("SELECT batches FROM log WHERE seq=?", (seq,)).fetchone()
                try:
                    batches = unpack(packed, columns)
                except ValueError as error:
                    log.error("%s: row %d is damaged and set aside: %s", self.path, seq, error)
                    self.connection.execute("INSERT OR REPLACE INTO damaged VALUES (?, ?)", (seq, packed))
                    continue
                for batch in batches:
                    if seq > deleted.get(batch.run, 0):
                        self.marks.add(batch.run, batch.writer, batch.seq)
                yield seq, [batch for batch in batches if seq > upto.get(batch.run, 0)]

    def append(self, batches: Sequence[SampleBatch]) -> int:
        """Make batches durable in a row; its number.

        Raises:
            StoreUnavailable: they are not stored.
        """
        problem = self.problem()
        if problem is not None:
            raise StoreUnavailable(problem)
        seq = self.last_seq + 1
        new: dict[Columns, int] = {}
        with database.failing(self.path), database.transaction(self.connection):
            packed = self._pack(batches, new)
            self.connection.execute("INSERT INTO log VALUES (?, ?)", (seq, packed))
        self._columns.update(new)
        self.last_seq = seq
        self._rows.append((seq, len(packed)))
        self.bytes += len(packed)
        for batch in batches:
            self.marks.add(batch.run, batch.writer, batch.seq)
        return seq

    def _pack(self, batches: Sequence[SampleBatch], new: dict[Columns, int]) -> bytes:
        parts = [b""]
        for batch in batches:
            columns = self._columns.get(batch.metrics) or new.get(batch.metrics)
            if columns is None:
                columns = new[batch.metrics] = add_columns(self.connection, batch.metrics)
            packed = batch.body or batch_body.pack(batch.t, batch.values, batch_body.NONE)
            parts.append(_BATCH.pack(batch.run, batch.writer, batch.seq, columns, len(packed)))
            parts.append(packed)
        joined = b"".join(parts)
        return _CHECKSUM.pack(zlib.crc32(joined)) + joined

    def note_sealed(self, upto: Mapping[int, int]) -> None:
        """Of these runs, nothing in rows up to `upto` is needed any longer. Made durable by the next
        `trim`.
        """
        self._sealed.update(upto)

    def trim(self, needed_seq: int | None) -> bool:
        """Delete rows before `needed_seq` (None: all, and empty the last), some at a time; whether there
        are more.
        """
        needed = self.last_seq if needed_seq is None else min(needed_seq, self.last_seq)
        bytes_freed = rows = 0
        while rows < len(self._rows) and self._rows[rows][0] < needed and bytes_freed < _MOST_TRIMMED_BYTES:
            bytes_freed += self._rows[rows][1]
            rows += 1
        if not rows and not self._sealed:
            return False
        first = self._rows[rows][0] if rows < len(self._rows) else needed
        empties_last = needed_seq is None and rows == len(self._rows) - 1
        with database.failing(self.path), database.transaction(self.connection):
            self.connection.executemany("REPLACE INTO sealed VALUES (?, ?)", self._sealed.items())
            self.marks.write()
            self.connection.execute("DELETE FROM log WHERE seq < ?", (first,))
            if empties_last:
                self.connection.execute("UPDATE log SET batches=? WHERE seq=?", (EMPTY, first))
            self.connection.execute("DELETE FROM sealed WHERE seq < ?", (first,))
            self.connection.execute("DELETE FROM deleted WHERE seq < ? AND done", (first,))
        self._sealed.clear()
        self.marks.written()
        for _ in range(rows):
            self._rows.popleft()
        self.bytes -= bytes_freed
        if empties_last:
            self.bytes -= self._rows[0][1] - len(EMPTY)
            self._rows[0] = (first, len(EMPTY))
        return bool(self._rows) and self._rows[0][0] < needed

    def delete(self, run: int) -> None:
        """Forget a run's batches; from now on it must be deleted from the chunks as well, until
        `delete_done`.
        """
        with database.failing(self.path), database.transaction(self.connection):
            self.connection.execute("REPLACE INTO deleted VALUES (?, ?, 0)", (run, self.last_seq))
            self.connection.execute("DELETE FROM sealed WHERE run=?", (run,))
            self.marks.delete(run)
        self.marks.deleted(run)
        self._sealed.pop(run, None)

    def delete_done(self, run: int) -> None:
        with database.failing(self.path):
            self.connection.execute("UPDATE deleted SET done=1 WHERE run=?", (run,))

    def half_deleted(self) -> list[int]:
        """Runs whose chunks are still to be deleted."""
        with database.failing(self.path):
            return [run for (run,) in self.connection.execute("SELECT run FROM deleted WHERE NOT done")]

    def give_back(self) -> None:
        """Return free pages to the file system."""
        with database.failing(self.path):
            database.give_back(self.connection)

    def close(self) -> None:
        self.connection.close()


def check_there(folder: str, has_samples: bool) -> None:
    """
    Raises:
        StoreError: there are samples, and no log: what was acknowledged last is missing.
    """
    path = os.path.join(folder, NAME)
    if has_samples and not os.path.exists(path):
        raise StoreError(
            f"{path} is missing: it had the newest samples, and what was stored already. Put it back from a "
            "backup, or make a new one with `runvitals store repair`"
        )


def existing(folder: str) -> str:
    """The path of a store's log.

    Raises:
        StoreError: there is none.
    """
    path = os.path.join(folder, NAME)
    if not os.path.exists(path):
        raise StoreError(f"there is no store in {folder}")
    return path


def unpack(packed: bytes, columns: Mapping[int, Columns]) -> list[SampleBatch]:
    """The batches of a row.

    Raises:
        ValueError: it is damaged.
    """
    if len(packed) < _CHECKSUM.size or _CHECKSUM.unpack_from(packed)[0] != zlib.crc32(
        packed[_CHECKSUM.size :]
    ):
        raise ValueError("the checksum does not match")
    batches = []
    position = _CHECKSUM.size
    view = memoryview(packed)
    while position < len(packed):
        run, writer, number, column_id, length = _BATCH.unpack_from(packed, position)
        position += _BATCH.size
        if column_id not in columns:
            raise ValueError(f"its columns {column_id} are unknown")
        metrics = columns[column_id]
        t, values = batch_body.unpack(view[position : position + length], len(metrics))
        batches.append(SampleBatch(run, writer, number, metrics, t, values))
        position += length
    return batches
