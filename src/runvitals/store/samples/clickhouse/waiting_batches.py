"""Batches that wait on this machine's disk until ClickHouse can store them, with a limit.

A row per append: its batches, each with its version, identity, columns, and times and values packed as the
client sent them; then a CRC-32. `owner` has the id of the store that they are for: the metadata store that
belongs to it has assigned their ids. For one process at a time.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
import zlib
from collections.abc import Sequence

import numpy as np

from runvitals.model import batch_body
from runvitals.store.database_files import OpenedFile
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.interface import SampleBatch, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.database import Format

NAME = "waiting.db"


def _add_owner(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE owner (store_id TEXT NOT NULL)")


FORMAT = Format(
    application_id=0x52564357,
    schema="""
    CREATE TABLE waiting (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
    CREATE TABLE damaged (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
    CREATE TABLE owner (store_id TEXT NOT NULL)
    """,
    migrations=(_add_owner,),
)
_BATCH = struct.Struct("<QQQQII")
_CHECKSUM = struct.Struct("<I")

log = logging.getLogger("runvitals.store")


class WaitingBatches:
    """The batches that wait, oldest first. Thread-safe.

    Args:
        limit_bytes: how many bytes may wait.

    Raises:
        StoreError: the file cannot be opened.
    """

    def __init__(self, path: str, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self._connection = database.open_for_writing(path, FORMAT)
        self._file = OpenedFile(path)
        self._lock = threading.Lock()
        with database.store_errors(path):
            # The counts are in memory: SQLite would read every row for them.
            rows = self._connection.execute(
                "SELECT seq, length(batches) FROM waiting ORDER BY seq"
            ).fetchall()
        self._sizes: dict[int, int] = dict(rows)
        self._next = max(self._sizes, default=0) + 1

    @property
    def bytes(self) -> int:
        """The size of the batches that wait."""
        with self._lock:
            return sum(self._sizes.values())

    def __len__(self) -> int:
        """The number of appends that wait."""
        return len(self._sizes)

    def problem(self) -> str | None:
        """Return why batches would be lost: the file was deleted or replaced."""
        return self._file.problem()

    def claim(self, store_id: str) -> None:
        """Use the file for the store of this id from now on.

        Raises:
            StoreError: batches for another one wait in it.
        """
        with self._lock, database.store_errors(self.path):
            row = self._connection.execute("SELECT store_id FROM owner").fetchone()
            if row == (store_id,):
                return
            if row is not None and self._sizes:
                raise StoreError(
                    f"{self.path} has batches that wait for another store: start a server with that one "
                    "and its metadata store, or move the file away"
                )
            with database.transaction(self._connection):
                self._connection.execute("DELETE FROM owner")
                self._connection.execute("INSERT INTO owner VALUES (?)", (store_id,))

    def add(self, accepted: Sequence[AcceptedBatch]) -> None:
        """Add batches durably.

        Raises:
            StoreUnavailable: there are too many already, or the disk is full: none was added.
        """
        packed = _pack(accepted)
        with self._lock:
            problem = self._file.problem()
            if problem is not None:
                raise StoreUnavailable(problem)
            waiting = sum(self._sizes.values())
            if waiting + len(packed) > self.limit_bytes:
                raise StoreUnavailable(
                    f"{self.path}: {waiting} bytes wait for ClickHouse, of at most {self.limit_bytes}"
                )
            seq = self._next
            with database.store_errors(self.path), database.transaction(self._connection):
                self._connection.execute("INSERT INTO waiting VALUES (?, ?)", (seq, packed))
            self._sizes[seq] = len(packed)
            self._next += 1

    def oldest(self, max_bytes: int) -> tuple[list[int], list[AcceptedBatch]]:
        """Return the numbers of the oldest rows, of about as many bytes, and their batches."""
        with self._lock:
            numbers: list[int] = []
            size = 0
            for seq, row_bytes in self._sizes.items():
                if numbers and size + row_bytes > max_bytes:
                    break
                numbers.append(seq)
                size += row_bytes
            batches = [batch for seq in numbers for batch in self._read(seq)]
        return numbers, batches

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove rows whose batches are stored."""
        with self._lock:
            with database.store_errors(self.path), database.transaction(self._connection):
                self._connection.executemany("DELETE FROM waiting WHERE seq=?", [(seq,) for seq in numbers])
            for seq in numbers:
                del self._sizes[seq]
            if not self._sizes:
                with database.store_errors(self.path):
                    database.release_free_pages(self._connection)

    def _read(self, seq: int) -> list[AcceptedBatch]:
        with database.store_errors(self.path):
            (packed,) = self._connection.execute("SELECT batches FROM waiting WHERE seq=?", (seq,)).fetchone()
            try:
                return _unpack(packed)
            except (ValueError, struct.error) as error:
                log.error("%s: row %d is damaged and was set aside: %s", self.path, seq, error)
                self._connection.execute("INSERT OR REPLACE INTO damaged VALUES (?, ?)", (seq, packed))
                return []

    def close(self) -> None:
        """Close the file; an error is only logged."""
        with self._lock:
            try:
                self._connection.close()
            except sqlite3.Error as error:
                log.error("%s: %s", self.path, error)


def count_waiting(path: str) -> int:
    """Return the number of appends that wait in a file that no process has opened.

    Raises:
        StoreError: it cannot be read.
    """
    connection = database.open_for_reading(path, FORMAT)
    try:
        with database.store_errors(path):
            return int(connection.execute("SELECT count(*) FROM waiting").fetchone()[0])
    finally:
        connection.close()


def _pack(accepted: Sequence[AcceptedBatch]) -> bytes:
    parts = []
    for version, batch in accepted:
        body = batch.body or batch_body.pack(batch.t, batch.values, batch_body.NONE)
        parts.append(_BATCH.pack(version, batch.run, batch.writer, batch.seq, len(batch.metrics), len(body)))
        parts.append(np.array(batch.metrics, "<u4").tobytes())
        parts.append(body)
    joined = b"".join(parts)
    return _CHECKSUM.pack(zlib.crc32(joined)) + joined


def _unpack(packed: bytes) -> list[AcceptedBatch]:
    """Read the batches of a row.

    Raises:
        ValueError, struct.error: the row is damaged.
    """
    if _CHECKSUM.unpack_from(packed)[0] != zlib.crc32(packed[_CHECKSUM.size :]):
        raise ValueError("the checksum does not match")
    accepted = []
    view = memoryview(packed)
    position = _CHECKSUM.size
    while position < len(packed):
        version, run, writer, seq, columns, length = _BATCH.unpack_from(packed, position)
        position += _BATCH.size
        metrics = tuple(np.frombuffer(view, "<u4", columns, position).tolist())
        position += 4 * columns
        body = view[position : position + length]
        t, values = batch_body.unpack(body, columns)
        position += length
        accepted.append(
            AcceptedBatch(version, SampleBatch(run, writer, seq, metrics, t, values, bytes(body)))
        )
    return accepted
