"""The rows of a month file about chunks whose values are in cold storage.

Such a chunk has a negative number in the column `data`: minus the id of its row in the table `cold`. A month
file gets these tables, and format 2, with its first cold chunk; older versions can still read the others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from runvitals.store.samples.sqlite.chunks import Chunk

VERSION = 2
"""Format of a month file with cold chunks."""
_TABLES = (
    # used: bytes of the chunks that refer to it.
    """CREATE TABLE object (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL,
        used INTEGER NOT NULL DEFAULT 0)""",
    # Where the values of a chunk are in an object.
    """CREATE TABLE cold (id INTEGER PRIMARY KEY, object INTEGER NOT NULL, offset INTEGER NOT NULL,
        bytes INTEGER NOT NULL)""",
    "CREATE INDEX cold_object ON cold (object)",
    """CREATE TRIGGER cold_added AFTER INSERT ON cold
        BEGIN UPDATE object SET used = used + new.bytes WHERE id = new.object; END""",
    """CREATE TRIGGER cold_removed AFTER DELETE ON cold
        BEGIN UPDATE object SET used = used - old.bytes WHERE id = old.object; END""",
)
_UNUSED = "FROM object WHERE NOT EXISTS (SELECT 1 FROM cold WHERE cold.object = object.id)"


class LocalChunk(NamedTuple):
    """A chunk whose values are in the month file, with its encoded values and times."""

    chunk: Chunk
    values: bytes
    times: bytes


def has_cold(connection: sqlite3.Connection) -> bool:
    """Return whether a month file has, or had, cold chunks."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name='cold'").fetchone() is not None


def old_runs(connection: sqlite3.Connection, before_ms: int) -> list[int]:
    """The runs with chunks that may have ended before a time, without those that are yet to be compacted."""
    rows = connection.execute(
        """SELECT run FROM run WHERE t0 < ?1 AND chunks_t1 IS NOT NULL AND (seals = 0 OR t1 >= ?1)
        ORDER BY run""",
        (before_ms,),
    )
    return [run for (run,) in rows]


def local_chunks(
    connection: sqlite3.Connection, run: int, before_ms: int, after: tuple[int, int], max_bytes: int
) -> list[LocalChunk]:
    """Chunks of a run that ended before a time and whose values are in the file, by metric and time.

    Args:
        after: (metric, t0) of the last chunk that was seen.
        max_bytes: of values; at least one chunk is returned if there is one.
    """
    rows = connection.execute(
        """SELECT run, metric, t0, t1, ticks, summary, chunk.times, chunk.data, data.data, times.data
        FROM chunk JOIN data ON data.id = chunk.data JOIN times ON times.id = chunk.times
        WHERE run=? AND (metric, t0) > (?, ?) AND chunk.data > 0 AND t1 < ? ORDER BY metric, t0""",
        (run, *after, before_ms),
    )
    chunks: list[LocalChunk] = []
    size = 0
    for *chunk, values, times in rows:
        chunks.append(LocalChunk(Chunk(*chunk), values, times))
        size += len(values)
        if size >= max_bytes:
            break
    return chunks


def move(
    connection: sqlite3.Connection, sha256: str, size: int, placed: Iterable[tuple[LocalChunk, int]]
) -> int:
    """Refer to an object for the values of chunks, inside a transaction. Returns how many were moved.

    Args:
        placed: chunks as they were read, with the offsets of their values in the object. Those that have
            changed since are left as they are.
    """
    if not has_cold(connection):
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("INSERT OR IGNORE INTO object (sha256, bytes) VALUES (?, ?)", (sha256, size))
    (object_id,) = connection.execute("SELECT id FROM object WHERE sha256=?", (sha256,)).fetchone()
    moved = 0
    for (chunk, values, _), offset in placed:
        row = connection.execute(
            """SELECT chunk.times, chunk.data, chunk.ticks, data.data
            FROM chunk JOIN data ON data.id = chunk.data WHERE run=? AND metric=? AND t0=?""",
            chunk[:3],
        ).fetchone()
        if row != (chunk.times, chunk.data, chunk.ticks, values):
            continue
        cold_id = connection.execute(
            "INSERT INTO cold (object, offset, bytes) VALUES (?, ?, ?)", (object_id, offset, len(values))
        ).lastrowid
        assert cold_id is not None
        connection.execute(
            "UPDATE chunk SET data=? WHERE run=? AND metric=? AND t0=?", (-cold_id, *chunk[:3])
        )
        connection.execute("DELETE FROM data WHERE id=?", (chunk.data,))
        moved += 1
    return moved


def remove_run(connection: sqlite3.Connection, run: int) -> None:
    """Remove the rows of the cold chunks of a run, before its chunks."""
    if has_cold(connection):
        connection.execute(
            "DELETE FROM cold WHERE id IN (SELECT -data FROM chunk WHERE run=? AND data < 0)", (run,)
        )


def objects(connection: sqlite3.Connection) -> list[str]:
    """Return the objects of a month file, by their SHA-256."""
    if not has_cold(connection):
        return []
    return [sha256 for (sha256,) in connection.execute("SELECT sha256 FROM object")]


def object_sizes(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the sizes of the objects that chunks of a month file refer to, by their SHA-256."""
    if not has_cold(connection):
        return {}
    return dict(connection.execute("SELECT sha256, bytes FROM object WHERE used > 0"))


class ObjectValues(NamedTuple):
    """Numbers of a run's metrics and values in some objects, and their first and last times."""

    run: int
    metrics: int
    values: int
    t0: int
    t1: int


def values_in(connection: sqlite3.Connection, digests: Collection[str]) -> list[ObjectValues]:
    """Return what the chunks of a month file have in these objects, by run."""
    rows = connection.execute(
        """SELECT run, count(DISTINCT metric), sum(ticks), min(t0), max(t1)
        FROM chunk JOIN cold ON cold.id = -chunk.data JOIN object ON object.id = cold.object
        WHERE sha256 IN (SELECT value FROM json_each(?)) GROUP BY run ORDER BY run""",
        (json.dumps(sorted(digests)),),
    )
    return [ObjectValues(*row) for row in rows]


def used_bytes(connection: sqlite3.Connection) -> int:
    """Size of the values of all cold chunks."""
    if not has_cold(connection):
        return 0
    return int(connection.execute("SELECT coalesce(sum(used), 0) FROM object").fetchone()[0])


def unused_objects(connection: sqlite3.Connection) -> list[str]:
    """Return the objects that no chunk refers to any more."""
    if not has_cold(connection):
        return []
    return [sha256 for (sha256,) in connection.execute(f"SELECT sha256 {_UNUSED}")]


def remove_unused(connection: sqlite3.Connection, digests: Sequence[str]) -> None:
    """Remove the rows of objects that no chunk refers to."""
    connection.executemany(
        f"DELETE FROM object WHERE sha256=? AND id IN (SELECT id {_UNUSED})",
        [(digest,) for digest in digests],
    )
