"""Chunks in a month file: find, decode, add and remove them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.store.samples import codec
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.cold.reading import ColdReader, ColdUnavailable, location_of
from runvitals.store.samples.sqlite.blocks import Group
from runvitals.store.samples.sqlite.chunk_summary import summarize


class Chunk(NamedTuple):
    """A row of the table `chunk`. `data` is negative if its values are in cold storage."""

    run: int
    metric: int
    t0: int
    t1: int
    ticks: int
    summary: bytes
    times: int
    data: int

    @property
    def is_cold(self) -> bool:
        """Whether its values are in cold storage."""
        return self.data < 0


_COLUMNS = "run, metric, t0, t1, ticks, summary, times, data"
# The chunks of a series do not overlap: of those that begin before the range, only the last can reach into
# it.
_IN_RANGE = f"""
    SELECT {_COLUMNS} FROM chunk WHERE run=?1 AND metric=?2 AND t0 <= ?4 AND t1 >= ?3
    AND t0 >= coalesce((SELECT max(t0) FROM chunk WHERE run=?1 AND metric=?2 AND t0 <= ?3), 0) ORDER BY t0
"""
# A skip scan through the index; SELECT DISTINCT would read every chunk of the run.
_METRICS = """
    WITH RECURSIVE found(metric) AS (
        SELECT min(metric) FROM chunk WHERE run=?1
        UNION ALL
        SELECT (SELECT min(metric) FROM chunk WHERE run=?1 AND metric > found.metric)
        FROM found WHERE found.metric IS NOT NULL
    ) SELECT metric FROM found WHERE metric IS NOT NULL
"""


def metrics_of(connection: sqlite3.Connection, run: int) -> list[int]:
    """Return the metrics of a run's chunks, ascending."""
    return [metric for (metric,) in connection.execute(_METRICS, (run,))]


def in_range(connection: sqlite3.Connection, run: int, metric: int, t0: int, t1: int) -> list[Chunk]:
    """Return the chunks of a series that overlap a range, in order of time."""
    return [Chunk(*row) for row in connection.execute(_IN_RANGE, (run, metric, t0, t1))]


def of_series(connection: sqlite3.Connection, run: int, metric: int) -> list[Chunk]:
    """Return all chunks of a series, in order of time."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM chunk WHERE run=? AND metric=? ORDER BY t0", (run, metric)
    )
    return [Chunk(*row) for row in rows]


def of_run(connection: sqlite3.Connection, run: int) -> list[Chunk]:
    """Return all chunks of a run, by metric."""
    return [Chunk(*row) for row in connection.execute(f"SELECT {_COLUMNS} FROM chunk WHERE run=?", (run,))]


def newest_with_value(connection: sqlite3.Connection, run: int, metric: int) -> Chunk | None:
    """Return the last chunk of a series that contains a value."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM chunk WHERE run=? AND metric=? ORDER BY t0 DESC", (run, metric)
    )
    for row in rows:
        chunk = Chunk(*row)
        if any(chunk.summary[:4]):  # n, the first field
            return chunk
    return None


class ChunkDecoder:
    """Decodes chunks; times that chunks share are decoded once.

    Args:
        cold: reads the values of cold chunks; None: as the connection says.
    """

    def __init__(self, connection: sqlite3.Connection, cold: ColdReader | None = None) -> None:
        self._connection = connection
        self._cold = cold or getattr(connection, "cold", None)
        self._times: dict[int, Integers] = {}

    def times(self, chunk: Chunk) -> Integers:
        """Return the times of a chunk, ms UTC.

        Raises:
            CorruptData: the chunk is damaged.
        """
        times = self._times.get(chunk.times)
        if times is None:
            times = self._times[chunk.times] = codec.decode(
                self._blob("times", chunk.times), np.int64, chunk.ticks
            )
        if len(times) != chunk.ticks or times[0] != chunk.t0 or times[-1] != chunk.t1:
            raise CorruptData("the times do not match the chunk")
        return times

    def values(self, chunk: Chunk) -> Floats:
        """Return the values of a chunk; raise CorruptData, or ColdUnavailable."""
        if chunk.is_cold:
            return self._cold_values(chunk)
        return codec.decode(self._blob("data", chunk.data), np.float64, chunk.ticks)

    def _cold_values(self, chunk: Chunk) -> Floats:
        location = location_of(self._connection, -chunk.data)
        if location is None:
            raise CorruptData(f"row {-chunk.data} of table cold is missing")
        if self._cold is None:
            raise ColdUnavailable("these samples are in cold storage: start the server with --cold-storage")
        try:
            return codec.decode(self._cold.read(location), np.float64, chunk.ticks)
        except CorruptData as error:
            # Objects are verified when they are fetched: the copy in the cache was damaged.
            self._cold.forget(location)
            raise ColdUnavailable(
                f"the object {location.sha256} was damaged in the cache: {error}"
            ) from error

    def _blob(self, table: str, blob_id: int) -> bytes:
        row = self._connection.execute(f"SELECT data FROM {table} WHERE id=?", (blob_id,)).fetchone()
        if row is None:
            raise CorruptData(f"row {blob_id} of table {table} is missing")
        if not isinstance(row[0], bytes):
            raise CorruptData(f"row {blob_id} of table {table} has no bytes")
        return row[0]


class _SharedTimes:
    """Times shared by chunks that are added in one transaction."""

    __slots__ = ("chunks", "data", "id")

    def __init__(self, times_id: int, data: bytes) -> None:
        self.id = times_id
        self.data = data
        self.chunks = 0


class ChunkWriter:
    """Collects chunks to add and remove; `write` executes it, inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._next_times = self._next_data = 0
        self._added: list[Chunk] = []
        self._times: dict[bytes, _SharedTimes] = {}
        self._data: list[tuple[int, bytes]] = []
        self._removed: list[Chunk] = []

    def _next(self, table: str) -> int:
        (last,) = self._connection.execute(f"SELECT max(id) FROM {table}").fetchone()
        return (last or 0) + 1

    def add(self, run: int, group: Group, level: int = codec.SEAL_LEVEL) -> None:
        """Add a chunk for each metric of a group."""
        if not self._next_data:
            self._next_times, self._next_data = self._next("times"), self._next("data")
        rows = np.ascontiguousarray(group.values.T)
        t0, t1 = int(group.t[0]), int(group.t[-1])
        times = self._times.get(group.t.tobytes())
        if times is None:
            times = self._times[group.t.tobytes()] = _SharedTimes(
                self._next_times, codec.encode(group.t, level)
            )
            self._next_times += 1
        times.chunks += len(group.metrics)
        for metric, values, summary in zip(group.metrics, rows, summarize(group.t, rows), strict=True):
            self._data.append((self._next_data, codec.encode(values, level)))
            self._added.append(
                Chunk(
                    *(run, metric, t0, t1, len(group.t)),
                    *(summary.tobytes(), times.id, self._next_data),
                )
            )
            self._next_data += 1

    def remove(self, chunks: Iterable[Chunk]) -> None:
        """Note chunks to be removed by `write`."""
        self._removed.extend(chunks)

    def write(self) -> None:
        """Remove and insert the noted chunks."""
        removed, execute = self._removed, self._connection.executemany
        if not removed and not self._added:
            return
        execute("DELETE FROM chunk WHERE run=? AND metric=? AND t0=?", [chunk[:3] for chunk in removed])
        execute("DELETE FROM data WHERE id=?", [(chunk.data,) for chunk in removed if not chunk.is_cold])
        if any(chunk.is_cold for chunk in removed):
            execute("DELETE FROM cold WHERE id=?", [(-chunk.data,) for chunk in removed if chunk.is_cold])
        execute("UPDATE times SET chunks=chunks-1 WHERE id=?", [(chunk.times,) for chunk in removed])
        execute(
            "DELETE FROM times WHERE id=? AND chunks <= 0",
            [(times,) for times in {chunk.times for chunk in removed}],
        )
        execute(
            "INSERT INTO times VALUES (?, ?, ?)", [(t.id, t.chunks, t.data) for t in self._times.values()]
        )
        execute("INSERT INTO data VALUES (?, ?)", self._data)
        execute("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._added)
        self._removed, self._data, self._added = [], [], []
        self._times = {}
