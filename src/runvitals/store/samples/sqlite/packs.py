"""Packs: samples of a run that are too few for chunks, all metrics in one row. A short run is a single pack.

They are encoded like the bodies of batches. For few ticks, zstd over all columns is smaller than a codec per
column (10 ticks: 1.5 bytes per value; 4.3 with pcodec).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from runvitals.base.buckets import Floats, Integers
from runvitals.model import batch_body
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.sqlite.blocks import Block, Group, on_disk
from runvitals.store.samples.sqlite.column_sets import add_columns, read_columns, unpack_columns


class Pack(NamedTuple):
    """A row of the table `pack`, with its columns."""

    id: int
    run: int
    metrics: tuple[int, ...]
    t0: int
    t1: int
    ticks: int
    body: bytes

    @property
    def samples(self) -> int:
        """The number of samples, gaps included."""
        return self.ticks * len(self.metrics)

    def block(self) -> Block:
        """Return the samples of a pack, or raise CorruptData."""
        return on_disk(self.metrics, *self._unpack())

    def series(self, metric: int) -> tuple[Integers, Floats] | None:
        """Return a metric's samples, with ascending and unique times; None without any. Raise CorruptData."""
        if metric not in self.metrics:
            return None
        t, values = self._unpack()
        return t, values[:, self.metrics.index(metric)]

    def _unpack(self) -> tuple[Integers, Floats]:
        if not self.metrics:
            raise CorruptData("its set of columns is missing or damaged")
        if not isinstance(self.body, bytes):
            raise CorruptData("it has no bytes")
        try:
            t, values = batch_body.unpack(self.body, len(self.metrics))
        except ValueError as error:
            raise CorruptData(str(error)) from error
        if len(t) != self.ticks:
            raise CorruptData(f"expected {self.ticks} ticks, got {len(t)}")
        return t, values


class SameShapePacks(NamedTuple):
    """Packs of the same shape, each of a different run.

    `column` is the index of the requested metric among `columns`.
    """

    columns: int
    ticks: int
    column: int
    runs: list[int]
    bodies: list[bytes]

    def series(self) -> tuple[Integers, Floats] | None:
        """Times and values of shape (runs, ticks); None if the packs must be read one by one."""
        return batch_body.unpack_column(self.bodies, self.ticks, self.columns, self.column)


_SELECT = """SELECT pack.id, run, metrics, t0, t1, ticks, body
    FROM pack LEFT JOIN columns ON columns.id = pack.columns"""


def of_run(connection: sqlite3.Connection, run: int) -> list[Pack]:
    """Return the packs of a run."""
    return [_pack(row) for row in connection.execute(f"{_SELECT} WHERE run=?", (run,))]


def of_all(connection: sqlite3.Connection, t0: int, t1: int) -> Iterator[Pack]:
    """Return the packs of all runs that overlap a range, by run."""
    return map(_pack, connection.execute(f"{_SELECT} WHERE t0<=? AND t1>=? ORDER BY run", (t1, t0)))


def of_same_shape(
    connection: sqlite3.Connection, runs: Set[int], metric: int, t0: int, t1: int
) -> list[SameShapePacks]:
    """Return the packs of these runs that contain a metric and overlap a range, by shape."""
    positions = {
        column_id: (metrics.index(metric), len(metrics))
        for column_id, metrics in read_columns(connection).items()
        if metric in metrics
    }
    rows = connection.execute("SELECT run, columns, ticks, body FROM pack WHERE t0<=? AND t1>=?", (t1, t0))
    by_shape: dict[tuple[int, int], SameShapePacks] = {}
    for run, columns, ticks, packed in rows:
        if run in runs and columns in positions:
            same_shape = by_shape.get((columns, ticks))
            if same_shape is None:
                column, count = positions[columns]
                same_shape = by_shape[columns, ticks] = SameShapePacks(count, ticks, column, [], [])
            same_shape.runs.append(run)
            same_shape.bodies.append(packed)
    return list(by_shape.values())


def _pack(row: tuple[int, int, bytes | None, int, int, int, bytes]) -> Pack:
    pack_id, run, metrics, t0, t1, ticks, packed = row
    return Pack(pack_id, run, unpack_columns(metrics), t0, t1, ticks, packed)


def add(connection: sqlite3.Connection, run: int, groups: Iterable[Group]) -> None:
    """Add each group as a pack."""
    for group in groups:
        packed = batch_body.pack(group.t, group.values)
        column_id = add_columns(connection, group.metrics)
        connection.execute(
            "INSERT INTO pack (run, columns, t0, t1, ticks, body) VALUES (?, ?, ?, ?, ?, ?)",
            (run, column_id, int(group.t[0]), int(group.t[-1]), len(group.t), packed),
        )


def remove(connection: sqlite3.Connection, packs: Iterable[Pack]) -> None:
    """Delete packs."""
    connection.executemany("DELETE FROM pack WHERE id=?", [(pack.id,) for pack in packs])
