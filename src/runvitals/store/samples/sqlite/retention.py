"""Deletes runs, old samples, and the oldest samples of a store that is too large."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from runvitals.store.samples.cold import rows as cold_rows
from runvitals.store.samples.sqlite import chunks, database, day_rollup, packs
from runvitals.store.samples.sqlite.chunks import ChunkWriter
from runvitals.store.samples.sqlite.day_rollup import DAY_MS, day_of
from runvitals.store.samples.sqlite.month_files import Month, MonthFiles, month_of, start_ms

_RUNS_PER_TRANSACTION = 16


def delete_run(connection: sqlite3.Connection, month: Month, run: int) -> None:
    """Delete a run from a month file, inside a transaction."""
    row = connection.execute("SELECT t0, t1 FROM run WHERE run=?", (run,)).fetchone()
    if row is None:
        return
    day_rollup.forget(connection, month, run, *row)
    connection.execute("DELETE FROM data WHERE id IN (SELECT data FROM chunk WHERE run=?)", (run,))
    cold_rows.remove_run(connection, run)
    connection.execute("DELETE FROM times WHERE id IN (SELECT times FROM chunk WHERE run=?)", (run,))
    for table in ("chunk", "pack", "run", "damaged"):
        connection.execute(f"DELETE FROM {table} WHERE run=?", (run,))


def drop_before(months: MonthFiles, t_ms: int) -> None:
    """Delete the files of months that ended before a time, and the older chunks and packs of its month."""
    for month in months.existing():
        if start_ms(month + 1) <= t_ms:
            months.remove(month)
    for month, _ in months.set_aside_files():
        if start_ms(month + 1) <= t_ms:
            months.remove_aside(month)
    month = month_of(t_ms)
    if month in months.existing():
        _drop_in_month(months, month, t_ms)


def _drop_in_month(months: MonthFiles, month: Month, t_ms: int) -> None:
    connection = months.writer(month)
    with database.store_errors(months.path(month)):
        older = [run for (run,) in connection.execute("SELECT run FROM run WHERE t0 < ?", (t_ms,))]
        for first in range(0, len(older), _RUNS_PER_TRANSACTION):
            with database.transaction(connection):
                for run in older[first : first + _RUNS_PER_TRANSACTION]:
                    _drop_in_run(connection, month, run, t_ms)
        (runs,) = connection.execute("SELECT count(*) FROM run").fetchone()
        if runs:
            database.release_free_pages(connection)
    if not runs:
        months.remove(month)


def _drop_in_run(connection: sqlite3.Connection, month: Month, run: int, t_ms: int) -> None:
    """Delete a run's chunks and packs that ended before a time."""
    (t1,) = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
    if t1 < t_ms:
        delete_run(connection, month, run)
        return
    day_rollup.forget(connection, month, run, start_ms(month), t_ms)
    writer = ChunkWriter(connection)
    writer.remove(chunk for chunk in chunks.of_run(connection, run) if chunk.t1 < t_ms)
    writer.write()
    connection.execute("DELETE FROM pack WHERE run=? AND t1 < ?", (run, t_ms))
    _recount(connection, run)


def _recount(connection: sqlite3.Connection, run: int) -> None:
    """Update a run's row after chunks or packs were deleted."""
    run_chunks = chunks.of_run(connection, run)
    packed = packs.of_run(connection, run)
    if not run_chunks and not packed:
        connection.execute("DELETE FROM run WHERE run=?", (run,))
        return
    ticks = sum(chunk.ticks for chunk in run_chunks) + sum(pack.samples for pack in packed)
    chunks_t1 = max((chunk.t1 for chunk in run_chunks), default=None)
    t0 = min([chunk.t0 for chunk in run_chunks] + [pack.t0 for pack in packed])
    connection.execute("UPDATE run SET t0=?, chunks_t1=?, samples=? WHERE run=?", (t0, chunks_t1, ticks, run))


def shrink_to(months: MonthFiles, size_bytes: int, size: Callable[[], int]) -> None:
    """Delete day after day, oldest first, until `size()` is at most `size_bytes` or nothing is left."""
    cut = 0
    while size() > size_bytes and (remaining := _all_months(months)):
        oldest = None
        if remaining[0] in months.existing():
            with database.store_errors(months.path(remaining[0])):
                (oldest,) = months.writer(remaining[0]).execute("SELECT min(t0) FROM run").fetchone()
        end = start_ms(remaining[0] + 1)
        # A chunk that reaches into the next day is deleted with the next cut.
        cut = end if oldest is None else min(max(cut, day_of(oldest) * DAY_MS) + DAY_MS, end)
        drop_before(months, cut)


def _all_months(months: MonthFiles) -> list[Month]:
    """Return the months with a file, including files that were set aside."""
    return sorted({*months.existing(), *(month for month, _ in months.set_aside_files())})
