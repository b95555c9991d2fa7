"""Checks a store: every page, every chunk, and every row that depends on others. Changes nothing."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

import numpy as np

from runvitals.base.buckets import Grid, combine
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.cold import noted_objects, rows
from runvitals.store.samples.cold.object_check import ObjectCheck, objects_checked
from runvitals.store.samples.cold.reading import ColdLost, ColdUnavailable, location_of
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import chunk_summary, chunks, database, day_rollup, log, packs, stored_ids
from runvitals.store.samples.sqlite.chunks import Chunk, ChunkDecoder
from runvitals.store.samples.sqlite.column_sets import read_columns
from runvitals.store.samples.sqlite.database import DamagedFile
from runvitals.store.samples.sqlite.month_files import MISSING, SET_ASIDE, Month, MonthFiles, start_ms
from runvitals.store.samples.sqlite.series import RunMonth


@dataclass(frozen=True, slots=True)
class Problem:
    """Damage or an inconsistency in a file."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def check(folder: str, reads_cold: bool = False) -> Iterator[Problem]:
    """Yield all problems of a store. Another process may have it open.

    Args:
        reads_cold: decode what is in cold storage, too, instead of only comparing names and sizes.

    Raises:
        StoreError: there is no store in the folder, or its log is missing or of another version.
    """
    path = log.existing_path(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection:
        yield from _until_unreadable(path, _check_log(connection, path))
        recorded = _recorded_months(connection)
        address = _cold_address(connection)
    months = MonthFiles(folder, _store_id(folder))
    with ExitStack() as stack:
        stack.callback(months.close)
        objects = yield from _check_objects(stack, months, address, folder)
        if reads_cold:
            months.cold = objects
        for _, path in months.set_aside_files():
            yield Problem(path, f"is {SET_ASIDE}: run `runvitals store repair` to recover readable samples")
        months.expect(recorded)
        for _, path in months.missing():
            yield Problem(path, MISSING)
        for month in months.existing():
            path = months.path(month)
            try:
                with months.reader(month) as reader:
                    yield from _until_unreadable(path, _check_month(reader, month, path))
                    if objects is not None:
                        yield from _until_unreadable(path, _lost_values(reader, path, objects))
            except StoreError as error:
                yield Problem(path, str(error).removeprefix(f"{path}: "))


def _cold_address(connection: sqlite3.Connection) -> str | None:
    try:
        return noted_objects.read_address(connection)
    except sqlite3.Error:  # reported as damage of the log
        return None


def _check_objects(
    stack: ExitStack, months: MonthFiles, address: str | None, folder: str
) -> Generator[Problem, None, ObjectCheck | None]:
    """Check that cold storage has the objects that month files refer to, in their size.

    Returns:
        what reads them; None if nothing is in cold storage, or if it cannot be used.
    """
    sizes: dict[str, int] = {}
    for month in months.existing():
        with (
            suppress(StoreError),  # reported as damage of the month
            months.reader(month) as connection,
            database.store_errors(months.path(month)),
        ):
            sizes.update(rows.object_sizes(connection))
    if not sizes:
        return None
    if address is None:
        yield Problem(folder, "old samples are in cold storage: start the server with --cold-storage")
        return None
    objects = stack.enter_context(objects_checked(address, sizes))
    try:
        objects.compare_sizes()
    except ColdUnavailable as error:
        yield Problem(address, str(error))
        return None
    return objects


def _lost_values(connection: sqlite3.Connection, path: str, objects: ObjectCheck) -> Iterator[Problem]:
    """Yield the values of a month that are lost with their objects."""
    for reason, digests in objects.reasons(rows.object_sizes(connection)).items():
        by_run = rows.values_in(connection, digests)
        values = sum(row.values for row in by_run)
        yield Problem(path, f"{values:,} values of {len(by_run):,} runs are lost: {reason}")


def _recorded_months(connection: sqlite3.Connection) -> log.RecordedMonths:
    try:
        return log.read_months(connection)
    except sqlite3.Error:  # reported as damage of the log
        return log.RecordedMonths()


def _store_id(folder: str) -> str | None:
    try:
        pairing = stored_ids.pairing_of(folder)
    except DamagedFile:  # reported as damage of the log
        return None
    return pairing and pairing.id


def _until_unreadable(path: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    try:
        yield from problems
    except sqlite3.Error as error:
        yield Problem(path, f"could not be read further: {error}")


def check_pages(connection: sqlite3.Connection, path: str) -> Iterator[Problem]:
    """Yield what SQLite finds wrong in a file."""
    for (text,) in connection.execute("PRAGMA integrity_check"):
        if text != "ok":
            yield Problem(path, text)


def _check_log(connection: sqlite3.Connection, path: str) -> Iterator[Problem]:
    yield from check_pages(connection, path)
    columns = read_columns(connection)
    for seq, packed in connection.execute("SELECT seq, CAST(batches AS BLOB) FROM log"):
        try:
            log.unpack(packed, columns)
        except ValueError as error:
            yield Problem(path, f"row {seq} of the log: {error}")
    for (seq,) in connection.execute("SELECT seq FROM damaged"):
        yield Problem(path, f"row {seq} of the log was damaged and moved to the table `damaged`")


def _check_month(connection: sqlite3.Connection, month: Month, path: str) -> Iterator[Problem]:
    yield from check_pages(connection, path)
    for run, metric, t0, t1, reason in connection.execute("SELECT run, metric, t0, t1, reason FROM damaged"):
        part = "a pack" if metric is None else f"a chunk of metric {metric}"
        yield Problem(path, f"run {run}: {part} from {t0} to {t1} ms was damaged and set aside: {reason}")
    for (run,) in connection.execute("SELECT run FROM run").fetchall():
        for text in _RunCheck(connection, month, run).problems():
            yield Problem(path, f"run {run}: {text}")
    for table, column in (("data", "data"), ("times", "times")):
        (orphans,) = connection.execute(
            f"SELECT count(*) FROM {table} WHERE id NOT IN (SELECT {column} FROM chunk)"
        ).fetchone()
        if orphans:
            yield Problem(path, f"{orphans} rows of table {table} do not belong to a chunk")
    for times_id, recorded, actual in connection.execute(
        """SELECT times.id, times.chunks, count(*) FROM times JOIN chunk ON chunk.times = times.id
        GROUP BY times.id HAVING times.chunks != count(*)"""
    ):
        yield Problem(path, f"times {times_id} are shared by {actual} chunks, not {recorded} as recorded")
    for table in ("chunk", "pack", "rollup"):
        runs = connection.execute(f"SELECT DISTINCT run FROM {table} WHERE run NOT IN (SELECT run FROM run)")
        yield from (Problem(path, f"run {run} is in table {table}, but not in table run") for (run,) in runs)
    if rows.has_cold(connection):
        (orphans,) = connection.execute(
            "SELECT count(*) FROM cold WHERE -id NOT IN (SELECT data FROM chunk WHERE data < 0)"
        ).fetchone()
        if orphans:
            yield Problem(path, f"{orphans} rows of table cold do not belong to a chunk")


class _RunCheck:
    """Checks a run in a month file."""

    def __init__(self, connection: sqlite3.Connection, month: Month, run: int) -> None:
        self._connection = connection
        self._month = month
        self._run = run
        self._decoder = ChunkDecoder(connection)
        self._reads_cold = getattr(connection, "cold", None) is not None
        self._is_complete = True

    def problems(self) -> Iterator[str]:
        run_chunks = chunks.of_run(self._connection, self._run)
        run_packs = packs.of_run(self._connection, self._run)
        for text in (*self._check_chunks(run_chunks), *self._check_packs(run_packs)):
            self._is_complete = False
            yield text
        yield from self._check_order(run_chunks)
        yield from self._check_row(run_chunks, run_packs)
        if self._is_complete and (self._reads_cold or not any(chunk.is_cold for chunk in run_chunks)):
            yield from self._check_rollup()

    def _check_chunks(self, run_chunks: list[Chunk]) -> Iterator[str]:
        for chunk in run_chunks:
            where = f"metric {chunk.metric}, chunk from {chunk.t0} to {chunk.t1} ms"
            try:
                t = self._decoder.times(chunk)
                if chunk.is_cold and not self._reads_cold:
                    if location_of(self._connection, -chunk.data) is None:
                        yield f"{where}: row {-chunk.data} of table cold is missing"
                    continue
                values = self._decoder.values(chunk)
            except ColdLost:  # reported once for all chunks
                self._is_complete = False
                continue
            except (CorruptData, ColdUnavailable) as error:
                yield f"{where}: {error}"
                continue
            if not (np.diff(t) > 0).all():
                yield f"{where}: its times are not ascending"
            elif chunk_summary.summarize(t, values.reshape(1, -1)).tobytes() != chunk.summary:
                yield f"{where}: its summary does not match its values"

    def _check_packs(self, run_packs: list[packs.Pack]) -> Iterator[str]:
        for pack in run_packs:
            where = f"pack from {pack.t0} to {pack.t1} ms"
            try:
                t = pack.block().t
            except CorruptData as error:
                yield f"{where}: {error}"
                continue
            if not (np.diff(t) > 0).all() or (t[0], t[-1]) != (pack.t0, pack.t1):
                yield f"{where}: its times do not match its range"

    def _check_order(self, run_chunks: list[Chunk]) -> Iterator[str]:
        for before, after in itertools.pairwise(run_chunks):
            if before.metric == after.metric and before.t1 >= after.t0:
                yield f"metric {after.metric}: two chunks overlap at {after.t0} ms"
        start, end = start_ms(self._month), start_ms(self._month + 1)
        for chunk in run_chunks:
            if chunk.t0 < start or chunk.t1 >= end:
                yield f"metric {chunk.metric}: the chunk at {chunk.t0} ms does not belong to this month"

    def _check_row(self, run_chunks: list[Chunk], run_packs: list[packs.Pack]) -> Iterator[str]:
        t0, t1, chunks_t1, samples = self._connection.execute(
            "SELECT t0, t1, chunks_t1, samples FROM run WHERE run=?", (self._run,)
        ).fetchone()
        actual = sum(chunk.ticks for chunk in run_chunks) + sum(pack.samples for pack in run_packs)
        if actual != samples:
            yield f"it has {actual} samples, not {samples} as recorded"
        if max((chunk.t1 for chunk in run_chunks), default=None) != chunks_t1:
            yield f"its chunks do not end at {chunks_t1} ms as recorded"
        for part_t0, part_t1 in [chunk[2:4] for chunk in run_chunks] + [
            (pack.t0, pack.t1) for pack in run_packs
        ]:
            if part_t0 < t0 or part_t1 > t1:
                yield f"it has samples from {part_t0} to {part_t1} ms, not only {t0} to {t1} ms as recorded"

    def _check_rollup(self) -> Iterator[str]:
        """Compare the day roll-up with the samples."""
        (rolled,) = self._connection.execute("SELECT rolled FROM run WHERE run=?", (self._run,)).fetchone()
        days = day_rollup.rolled_days(self._month, rolled)
        if not days:
            return
        on = Grid(days[0] * day_rollup.DAY_MS, day_rollup.DAY_MS, days[-1] - days[0] + 1)
        end = on.t0_ms + on.count * on.width_ms - 1
        series = RunMonth(self._connection, self._run, (), on.t0_ms, end)
        for metric, parts in series.buckets(sorted(series.metrics()), on):
            buckets = combine(parts)
            counts = dict(zip((buckets.t // day_rollup.DAY_MS).tolist(), buckets.n.tolist(), strict=True))
            for day in days:
                row = self._connection.execute(
                    "SELECT summary FROM rollup WHERE metric=? AND day=? AND run=?", (metric, day, self._run)
                ).fetchone()
                rolled_up = int(chunk_summary.unpack([row[0]])[0]["n"]) if row else 0
                if rolled_up != counts.get(day, 0):
                    yield (
                        f"metric {metric}, day {day}: the roll-up has {rolled_up} values instead of "
                        f"{counts.get(day, 0)}"
                    )
