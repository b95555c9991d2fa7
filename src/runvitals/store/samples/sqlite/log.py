"""The log: batches that were appended and are not in chunks yet, one row per commit.

A row is a CRC-32, then for every batch its run, writer, sequence number and set of columns, and its times and
values packed as the client sent them (`runvitals.model.batch_body`). Rows whose batches are all sealed are
deleted from the front. The last row is emptied instead, so that row numbers are never reused.

Only the commit thread uses the log.
"""

from __future__ import annotations

import glob
import logging
import os
import sqlite3
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from runvitals.model import batch_body
from runvitals.store.database_files import OpenedFile
from runvitals.store.samples.interface import SampleBatch, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.column_sets import Columns, add_columns, read_columns
from runvitals.store.samples.sqlite.database import Format
from runvitals.store.samples.sqlite.stored_batches import StoredBatches

NAME = "log.db"
UNFINISHED = ".unfinished"
"""Ends the name of a file of a store that is being restored, until all of it is there."""
_PAIRING = """
    -- The metadata store that assigned the ids: no row, or one (see `runvitals.server.pairing.pairing`).
    CREATE TABLE pairing (id TEXT NOT NULL, starts INTEGER NOT NULL, catalogue TEXT NOT NULL)"""


def _add_pairing(connection: sqlite3.Connection) -> None:
    connection.execute(_PAIRING)


FORMAT = Format(
    application_id=0x52564C31,
    schema="""
    CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
    CREATE TABLE log (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
    -- Stored batches: ranges of a writer's sequence numbers. Lags behind the log.
    CREATE TABLE mark (run INTEGER, writer INTEGER, first INTEGER, last INTEGER NOT NULL,
        PRIMARY KEY (run, writer, first)) WITHOUT ROWID;
    -- All batches of the run in rows up to this one are in chunks.
    CREATE TABLE sealed (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    -- All batches of the run in rows up to this one were deleted; done: its chunks were, too.
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
"""A row without batches."""
_ROW = "SELECT CAST(batches AS BLOB) FROM log WHERE seq=?"  # a damaged one may be a text
_MAX_TRIMMED_BYTES = 16 << 20

log = logging.getLogger("runvitals.store")


class Pairing(NamedTuple):
    """Links a sample store and its metadata store; both contain it.

    Args:
        id: random id of the pair.
        starts: number of server starts with the two; never larger in the sample store.
        metadata store: address of the metadata store, without a password.
    """

    id: str
    starts: int
    metadata_store: str


def read_pairing(connection: sqlite3.Connection) -> Pairing | None:
    """Return the pairing in a log; None if there is none yet."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='pairing'").fetchone():
        return None  # format 1
    row = connection.execute("SELECT id, starts, catalogue FROM pairing").fetchone()
    return None if row is None else Pairing(*row)


class RecordedMonths(NamedTuple):
    """The months that have files, so that a deleted file is detected.

    Args:
        written: months that have, or had, a file.
        lost: months whose file was deleted, and has been created anew since.
    """

    written: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


def read_months(connection: sqlite3.Connection) -> RecordedMonths:
    """Return the months recorded in a log; none in a log of an older version."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='month'").fetchone():
        return RecordedMonths()
    rows = connection.execute("SELECT month, lost FROM month").fetchall()
    return RecordedMonths(
        frozenset(month for month, _ in rows), frozenset(month for month, lost in rows if lost)
    )


class Log:
    """The log of a store.

    Raises:
        StoreError: it could not be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = database.open_for_writing(path, FORMAT)
        self._file = OpenedFile(path)
        with database.store_errors(path):
            self.stored_batches = StoredBatches(self.connection)
            self._columns = {
                metrics: column_id for column_id, metrics in read_columns(self.connection).items()
            }
            self._rows: deque[tuple[int, int]] = deque(
                self.connection.execute("SELECT seq, length(batches) FROM log ORDER BY seq")
            )
            self._sealed: dict[int, int] = {}
            self.last_seq = self._rows[-1][0] if self._rows else 0
            self.bytes = sum(size for _, size in self._rows)
            self._damaged = {seq for (seq,) in self.connection.execute("SELECT seq FROM damaged")}
            self.pairing = read_pairing(self.connection)
            self.months = read_months(self.connection)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever appended."""
        return not self.last_seq

    def problem(self) -> str | None:
        """Return why batches would be lost: the file was deleted or replaced. For use in any thread."""
        return self._file.problem()

    @property
    def damaged_rows(self) -> int:
        """Number of damaged rows that were set aside."""
        return len(self._damaged)

    def highest(self) -> tuple[int, int]:
        """Return the highest id of a run or writer, and of a metric, in the log."""
        with database.store_errors(self.path):
            in_marks = self.connection.execute("SELECT max(run), max(writer) FROM mark").fetchone()
        runs = [number for number in (*in_marks, *self._sealed) if number is not None]
        return max(runs, default=0), max((max(columns) for columns in self._columns if columns), default=0)

    def pair(self, pairing: Pairing) -> None:
        """Record the pairing with a metadata store."""
        with database.store_errors(self.path), database.transaction(self.connection):
            self.connection.execute("DELETE FROM pairing")
            self.connection.execute("INSERT INTO pairing VALUES (?, ?, ?)", pairing)
        self.pairing = pairing

    def record_months(self, months: RecordedMonths) -> None:
        """Replace the record of the month files."""
        with database.store_errors(self.path), database.transaction(self.connection):
            # Not part of the format version: older versions can read and write files with this table.
            self.connection.execute(
                "CREATE TABLE IF NOT EXISTS month (month INTEGER PRIMARY KEY, lost INTEGER NOT NULL)"
            )
            self.connection.execute("DELETE FROM month")
            rows = [(month, month in months.lost) for month in months.written]
            self.connection.executemany("INSERT INTO month VALUES (?, ?)", rows)
        self.months = months

    def unsealed(self) -> Iterator[tuple[int, list[SampleBatch]]]:
        """Yield the rows of the log with their unsealed batches. Adds all batches to `stored_batches`."""
        with database.store_errors(self.path):
            upto = dict(self.connection.execute("SELECT run, seq FROM sealed"))
            for run, seq in self.connection.execute("SELECT run, seq FROM deleted"):
                upto[run] = max(seq, upto.get(run, 0))
            deleted = dict(self.connection.execute("SELECT run, seq FROM deleted"))
            columns = {column_id: metrics for metrics, column_id in self._columns.items()}
            for index, (seq, size) in enumerate(list(self._rows)):
                (packed,) = self.connection.execute(_ROW, (seq,)).fetchone()
                try:
                    batches = unpack(packed, columns)
                except ValueError as error:
                    log.error("%s: row %d is damaged and was set aside: %s", self.path, seq, error)
                    with database.transaction(self.connection):
                        self.connection.execute("INSERT OR REPLACE INTO damaged VALUES (?, ?)", (seq, packed))
                        self.connection.execute("UPDATE log SET batches=? WHERE seq=?", (EMPTY, seq))
                    self._damaged.add(seq)
                    self._rows[index] = (seq, len(EMPTY))
                    self.bytes -= size - len(EMPTY)
                    continue
                for batch in batches:
                    if seq > deleted.get(batch.run, 0):
                        self.stored_batches.add(batch.run, batch.writer, batch.seq)
                yield seq, [batch for batch in batches if seq > upto.get(batch.run, 0)]

    def append(self, batches: Sequence[SampleBatch]) -> int:
        """Append batches durably as one row. Returns its number.

        Raises:
            StoreUnavailable: they were not stored.
        """
        problem = self.problem()
        if problem is not None:
            raise StoreUnavailable(problem)
        seq = self.last_seq + 1
        new: dict[Columns, int] = {}
        insert = "INSERT INTO log VALUES (?, ?)"
        with database.store_errors(self.path):
            if all(batch.metrics in self._columns for batch in batches):
                # A transaction by itself. Each statement more waits for the interpreter's lock again.
                packed = self._pack(batches, new)
                self.connection.execute(insert, (seq, packed))
            else:
                with database.transaction(self.connection):
                    packed = self._pack(batches, new)
                    self.connection.execute(insert, (seq, packed))
        self._columns.update(new)
        self.last_seq = seq
        self._rows.append((seq, len(packed)))
        self.bytes += len(packed)
        for batch in batches:
            self.stored_batches.add(batch.run, batch.writer, batch.seq)
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

    def record_sealed(self, upto: Mapping[int, int]) -> None:
        """Record that the batches of these runs are sealed up to a row. The next `trim` makes it durable."""
        self._sealed.update(upto)

    def trim(self, needed_seq: int | None) -> bool:
        """Delete some of the rows before `needed_seq` (None: all, and empty the last).

        Returns whether there are more.
        """
        needed = self.last_seq if needed_seq is None else min(needed_seq, self.last_seq)
        bytes_freed = rows = 0
        while rows < len(self._rows) and self._rows[rows][0] < needed and bytes_freed < _MAX_TRIMMED_BYTES:
            bytes_freed += self._rows[rows][1]
            rows += 1
        if not rows and not self._sealed:
            return False
        first = self._rows[rows][0] if rows < len(self._rows) else needed
        empties_last = needed_seq is None and rows == len(self._rows) - 1
        with database.store_errors(self.path), database.transaction(self.connection):
            self.connection.executemany("REPLACE INTO sealed VALUES (?, ?)", self._sealed.items())
            self.stored_batches.write()
            self.connection.execute("DELETE FROM log WHERE seq < ?", (first,))
            if empties_last:
                self.connection.execute("UPDATE log SET batches=? WHERE seq=?", (EMPTY, first))
            self.connection.execute("DELETE FROM sealed WHERE seq < ?", (first,))
            self.connection.execute("DELETE FROM deleted WHERE seq < ? AND done", (first,))
        self._sealed.clear()
        self.stored_batches.note_written()
        for _ in range(rows):
            self._rows.popleft()
        self.bytes -= bytes_freed
        if empties_last:
            self.bytes -= self._rows[0][1] - len(EMPTY)
            self._rows[0] = (first, len(EMPTY))
        return bool(self._rows) and self._rows[0][0] < needed

    def put_batches(self, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Record that batches of a run are sealed: ranges of their numbers by writer. Durable."""
        self.stored_batches.put(run, stored)
        with database.store_errors(self.path), database.transaction(self.connection):
            self.stored_batches.write()
        self.stored_batches.note_written()

    def delete(self, run: int) -> None:
        """Delete a run's batches. The deletion of its chunks is pending until `delete_done`."""
        with database.store_errors(self.path), database.transaction(self.connection):
            self.connection.execute("REPLACE INTO deleted VALUES (?, ?, 0)", (run, self.last_seq))
            self.connection.execute("DELETE FROM sealed WHERE run=?", (run,))
            self.stored_batches.delete(run)
        self.stored_batches.note_deleted(run)
        self._sealed.pop(run, None)

    def delete_done(self, run: int) -> None:
        """Record that a run was deleted from all files."""
        with database.store_errors(self.path):
            self.connection.execute("UPDATE deleted SET done=1 WHERE run=?", (run,))

    def pending_deletions(self) -> list[int]:
        """Return the runs whose chunks have not been deleted yet."""
        with database.store_errors(self.path):
            return [run for (run,) in self.connection.execute("SELECT run FROM deleted WHERE NOT done")]

    def release_free_pages(self) -> None:
        """Return free pages to the file system."""
        with database.store_errors(self.path):
            database.release_free_pages(self.connection)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


def check_exists(folder: str, has_samples: bool) -> None:
    """Check that a store with samples has a log, and that one without is new.

    Raises:
        StoreError: it has none: the samples that were acknowledged last are missing, or a restore was
            interrupted.
    """
    path = os.path.join(folder, NAME)
    if os.path.exists(path):
        return
    if os.path.exists(path + UNFINISHED):
        raise StoreError(
            f"{folder} is half restored from a backup: repeat `runvitals restore`, "
            f"or delete {NAME}{UNFINISHED} there"
        )
    if has_samples:
        raise StoreError(
            f"{path} is missing: it contained the newest samples. Restore it from a backup, or create a new "
            "one with `runvitals store repair`"
        )


def existing_path(folder: str) -> str:
    """Return the path of a store's log.

    Raises:
        StoreError: the log does not exist.
    """
    path = os.path.join(folder, NAME)
    if not os.path.exists(path):
        check_exists(folder, has_samples=bool(glob.glob(os.path.join(glob.escape(folder), "samples-*.db"))))
        raise StoreError(f"there is no store in {folder}")
    return path


def unpack(packed: bytes, columns: Mapping[int, Columns]) -> list[SampleBatch]:
    """Decode the batches of a row.

    Raises:
        ValueError: the row is damaged.
    """
    if len(packed) < _CHECKSUM.size or _CHECKSUM.unpack_from(packed)[0] != zlib.crc32(
        packed[_CHECKSUM.size :]
    ):
        raise ValueError("the checksum does not match")
    batches = []
    position = _CHECKSUM.size
    view = memoryview(packed)
    while position < len(packed):
        run, writer, seq, column_id, length = _BATCH.unpack_from(packed, position)
        position += _BATCH.size
        if column_id not in columns:
            raise ValueError(f"unknown set of columns {column_id}")
        metrics = columns[column_id]
        t, values = batch_body.unpack(view[position : position + length], len(metrics))
        batches.append(SampleBatch(run, writer, seq, metrics, t, values))
        position += length
    return batches
