"""Packs: a run's samples that are too few for chunks, all metrics in one row. A run of a minute is never more
than this.

Packed like the bodies of batches: for so few ticks zstd over all columns together beats any codec of single
ones (10 ticks: 1.5 bytes a value against 4.3 with pcodec).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from runvitals.buckets import Floats, Integers
from runvitals.model import batch_body
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.sqlite_chunks.blocks import Block, Group, on_disk
from runvitals.store.samples.sqlite_chunks.column_sets import add_columns, read_columns, unpack_columns


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
        return self.ticks * len(self.metrics)

    def block(self) -> Block:
        """
        Raises:
            Corrupt: it cannot be unpacked.
        """
        return on_disk(self.metrics, *self._unpacked())

    def series(self, metric: int) -> tuple[Integers, Floats] | None:
        """The samples of one metric, times ascending, each once; None where it is not among them.

        Raises:
            Corrupt: it cannot be unpacked.
        """
        if metric not in self.metrics:
            return None
        t, values = self._unpacked()
        return t, values[:, self.metrics.index(metric)]

    def _unpacked(self) -> tuple[Integers, Floats]:
        try:
            t, values = batch_body.unpack(self.body, len(self.metrics))
        except ValueError as error:
            raise Corrupt(str(error)) from error
        if len(t) != self.ticks:
            raise Corrupt(f"{self.ticks} ticks were expected, not {len(t)}")
        return t, values


class PackedAlike(NamedTuple):
    """Packs of one shape, each of another run. `column`: where the metric in question is among `columns`."""

    columns: int
    ticks: int
    column: int
    runs: list[int]
    bodies: list[bytes]

    def series(self) -> tuple[Integers, Floats] | None:
        """Times and values, runs × ticks; None where they must be read one by one."""
        return batch_body.unpack_column(self.bodies, self.ticks, self.columns, self.column)


_SELECT = """SELECT pack.id, run, metrics, t0, t1, ticks, body
    FROM pack LEFT JOIN columns ON columns.id = pack.columns"""


def of_run(connection: sqlite3.Connection, run: int) -> list[Pack]:
    """The packs of a run."""
    return [_pack(row) for row in connection.execute(f"{_SELECT} WHERE run=?", (run,))]


def of_all(connection: sqlite3.Connection, t0: int, t1: int) -> Iterator[Pack]:
    """The packs of all runs that reach into a range."""
    return map(_pack, connection.execute(f"{_SELECT} WHERE t0<=? AND t1>=? ORDER BY run", (t1, t0)))


def alike(connection: sqlite3.Connection, runs: Set[int], metric: int, t0: int, t1: int) -> list[PackedAlike]:
    """The packs of these runs that have a metric and reach into a range, by their shapes."""
    places = {
        number: (metrics.index(metric), len(metrics))
        for number, metrics in read_columns(connection).items()
        if metric in metrics
    }
    rows = connection.execute("SELECT run, columns, ticks, body FROM pack WHERE t0<=? AND t1>=?", (t1, t0))
    found: dict[tuple[int, int], PackedAlike] = {}
    for run, columns, ticks, packed in rows:
        if run in runs and columns in places:
            some = found.get((columns, ticks))
            if some is None:
                column, count = places[columns]
                some = found[columns, ticks] = PackedAlike(count, ticks, column, [], [])
            some.runs.append(run)
            some.bodies.append(packed)
    return list(found.values())


def _pack(row: tuple[int, int, bytes | None, int, int, int, bytes]) -> Pack:
    pack_id, run, metrics, t0, t1, ticks, packed = row
    return Pack(pack_id, run, unpack_columns(metrics), t0, t1, ticks, packed)


def add(connection: sqlite3.Connection, run: int, groups: Iterable[Group]) -> None:
    """Pack groups, a row each."""
    for group in groups:
        packed = batch_body.pack(group.t, group.values)
        column_id = add_columns(connection, group.metrics)
        connection.execute(
            "INSERT INTO pack (run, columns, t0, t1, ticks, body) VALUES (?, ?, ?, ?, ?, ?)",
            (run, column_id, int(group.t[0]), int(group.t[-1]), len(group.t), packed),
        )


def remove(connection: sqlite3.Connection, packs: Iterable[Pack]) -> None:
    connection.executemany("DELETE FROM pack WHERE id=?", [(pack.id,) for pack in packs])
