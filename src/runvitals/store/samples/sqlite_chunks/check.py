"""Checking a store: every page, every chunk, every row that says something about others. Nothing is
changed.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from runvitals.buckets import Grid, combine
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.sqlite_chunks import (
    chunk_summary,
    chunks,
    database,
    day_rollup,
    log,
    packs,
    stored_ids,
)
from runvitals.store.samples.sqlite_chunks.chunks import Chunk, Decoder
from runvitals.store.samples.sqlite_chunks.column_sets import read_columns
from runvitals.store.samples.sqlite_chunks.database import DamagedFile
from runvitals.store.samples.sqlite_chunks.month_files import ASIDE, MISSING, Month, Months, start_ms
from runvitals.store.samples.sqlite_chunks.series import RunMonth


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def check(folder: str) -> Iterator[Problem]:
    """Everything that is wrong with a store; another process may have it open.

    Raises:
        StoreError: there is no store in the folder, or it is of another version.
    """
    path = log.existing(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection:
        yield from _failing(path, _of_log(connection, path))
        noted = _noted_months(connection)
    months = Months(folder, _store_id(folder))
    try:
        for _, path in months.aside():
            yield Problem(path, f"is {ASIDE}: `runvitals store repair` brings back what it can")
        months.expect(noted)
        for _, path in months.missing():
            yield Problem(path, MISSING)
        for month in months.there():
            try:
                with months.reader(month) as reader:
                    yield from _failing(months.path(month), _of_month(reader, month, months.path(month)))
            except DamagedFile as error:
                yield Problem(months.path(month), str(error).removeprefix(f"{months.path(month)}: "))
    finally:
        months.close()


def _noted_months(connection: sqlite3.Connection) -> log.NotedMonths:
    try:
        return log.read_months(connection)
    except sqlite3.Error:  # the damage of the log is reported
        return log.NotedMonths()


def _store_id(folder: str) -> str | None:
    try:
        known = stored_ids.pairing_of(folder)
    except DamagedFile:  # the log's problems were told
        return None
    return known and known.id


def _failing(path: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    try:
        yield from problems
    except sqlite3.Error as error:
        yield Problem(path, f"cannot be read further: {error}")


def pages(connection: sqlite3.Connection, path: str) -> Iterator[Problem]:
    for (text,) in connection.execute("PRAGMA integrity_check"):
        if text != "ok":
            yield Problem(path, text)


def _of_log(connection: sqlite3.Connection, path: str) -> Iterator[Problem]:
    yield from pages(connection, path)
    columns = read_columns(connection)
    for seq, packed in connection.execute("SELECT seq, batches FROM log"):
        try:
            log.unpack(packed, columns)
        except ValueError as error:
            yield Problem(path, f"row {seq} of the log: {error}")
    for (seq,) in connection.execute("SELECT seq FROM damaged"):
        yield Problem(path, f"row {seq} of the log was damaged, and is set aside in the table damaged")


def _of_month(connection: sqlite3.Connection, month: Month, path: str) -> Iterator[Problem]:
    yield from pages(connection, path)
    for run, metric, t0, t1, reason in connection.execute("SELECT run, metric, t0, t1, reason FROM damaged"):
        what = "a pack" if metric is None else f"a chunk of metric {metric}"
        yield Problem(path, f"run {run}: {what} from {t0} to {t1} ms was damaged, and is set aside: {reason}")
    for (run,) in connection.execute("SELECT run FROM run").fetchall():
        for text in _Run(connection, month, run).problems():
            yield Problem(path, f"run {run}: {text}")
    for table, column in (("data", "data"), ("times", "times")):
        (lost,) = connection.execute(
            f"SELECT count(*) FROM {table} WHERE id NOT IN (SELECT {column} FROM chunk)"
        ).fetchone()
        if lost:
            yield Problem(path, f"{lost} rows of table {table} belong to no chunk")
    for times_id, said, counted in connection.execute(
        """SELECT times.id, times.chunks, count(*) FROM times JOIN chunk ON chunk.times = times.id
        GROUP BY times.id HAVING times.chunks != count(*)"""
    ):
        yield Problem(path, f"times {times_id} say that {said} chunks share them, and {counted} do")
    for table in ("chunk", "pack", "rollup"):
        rows = connection.execute(f"SELECT DISTINCT run FROM {table} WHERE run NOT IN (SELECT run FROM run)")
        yield from (
            Problem(path, f"table {table} has run {run}, which is not in table run") for (run,) in rows
        )


class _Run:
    """A run in a month."""

    def __init__(self, connection: sqlite3.Connection, month: Month, run: int) -> None:
        self._connection = connection
        self._month = month
        self._run = run
        self._decoder = Decoder(connection)

    def problems(self) -> Iterator[str]:
        there = chunks.of_run(self._connection, self._run)
        packed = packs.of_run(self._connection, self._run)
        damaged = False
        for text in (*self._of_chunks(there), *self._of_packs(packed)):
            damaged = True
            yield text
        yield from self._of_order(there)
        yield from self._of_row(there, packed)
        if not damaged:
            yield from self._of_days()

    def _of_chunks(self, there: list[Chunk]) -> Iterator[str]:
        for chunk in there:
            where = f"metric {chunk.metric}, chunk from {chunk.t0} to {chunk.t1} ms"
            try:
                t, values = self._decoder.times(chunk), self._decoder.values(chunk)
            except Corrupt as error:
                yield f"{where}: {error}"
                continue
            if not (np.diff(t) > 0).all():
                yield f"{where}: its times do not ascend"
            elif chunk_summary.summarise(t, values.reshape(1, -1)).tobytes() != chunk.summary:
                yield f"{where}: its summary is not that of its values"

    def _of_packs(self, packed: list[packs.Pack]) -> Iterator[str]:
        for pack in packed:
            where = f"pack from {pack.t0} to {pack.t1} ms"
            try:
                t = pack.block().t
            except Corrupt as error:
                yield f"{where}: {error}"
                continue
            if not (np.diff(t) > 0).all() or (t[0], t[-1]) != (pack.t0, pack.t1):
                yield f"{where}: its times are others"

    def _of_order(self, there: list[Chunk]) -> Iterator[str]:
        for before, after in itertools.pairwise(there):
            if before.metric == after.metric and before.t1 >= after.t0:
                yield f"metric {after.metric}: two chunks overlap at {after.t0} ms"
        lo, end = start_ms(self._month), start_ms(self._month + 1)
        for chunk in there:
            if chunk.t0 < lo or chunk.t1 >= end:
                yield f"metric {chunk.metric}: the chunk at {chunk.t0} ms is not of this month"

    def _of_row(self, there: list[Chunk], packed: list[packs.Pack]) -> Iterator[str]:
        t0, t1, chunks_t1, samples = self._connection.execute(
            "SELECT t0, t1, chunks_t1, samples FROM run WHERE run=?", (self._run,)
        ).fetchone()
        counted = sum(chunk.ticks for chunk in there) + sum(pack.samples for pack in packed)
        if counted != samples:
            yield f"{samples} samples are noted, and {counted} are there"
        if max((chunk.t1 for chunk in there), default=None) != chunks_t1:
            yield f"{chunks_t1} ms is noted as the end of its chunks, which it is not"
        for some_t0, some_t1 in [chunk[2:4] for chunk in there] + [(pack.t0, pack.t1) for pack in packed]:
            if some_t0 < t0 or some_t1 > t1:
                yield f"{t0} to {t1} ms is noted as its extent, and it has {some_t0} to {some_t1}"

    def _of_days(self) -> Iterator[str]:
        """The day roll-up says what the samples say."""
        (rolled,) = self._connection.execute("SELECT rolled FROM run WHERE run=?", (self._run,)).fetchone()
        days = day_rollup.rolled_days(self._month, rolled)
        if not days:
            return
        on = Grid(days[0] * day_rollup.DAY_MS, day_rollup.DAY_MS, days[-1] - days[0] + 1)
        end = on.t0_ms + on.count * on.width_ms - 1
        series = RunMonth(self._connection, self._run, (), on.t0_ms, end)
        for metric, parts in series.buckets(sorted(series.metrics()), on):
            buckets = combine(parts)
            held = dict(zip((buckets.t // day_rollup.DAY_MS).tolist(), buckets.n.tolist(), strict=True))
            for day in days:
                row = self._connection.execute(
                    "SELECT summary FROM rollup WHERE metric=? AND day=? AND run=?", (metric, day, self._run)
                ).fetchone()
                noted = int(chunk_summary.unpack([row[0]])[0]["n"]) if row else 0
                if noted != held.get(day, 0):
                    yield f"metric {metric}, day {day}: {noted} values are rolled up of {held.get(day, 0)}"
