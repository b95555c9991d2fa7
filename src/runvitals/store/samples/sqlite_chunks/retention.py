"""Taking away: runs, what is old, and what is too much."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from runvitals.store.samples.sqlite_chunks import chunks, database, day_rollup, packs
from runvitals.store.samples.sqlite_chunks.chunks import Writer
from runvitals.store.samples.sqlite_chunks.day_rollup import DAY_MS, day_of
from runvitals.store.samples.sqlite_chunks.month_files import Month, Months, month_of, start_ms

_RUNS_AT_ONCE = 16


def delete_run(connection: sqlite3.Connection, month: Month, run: int) -> None:
    """Delete all that a month holds of a run, inside a transaction."""
    row = connection.execute("SELECT t0, t1 FROM run WHERE run=?", (run,)).fetchone()
    if row is None:
        return
    day_rollup.forget(connection, month, run, *row)
    connection.execute("DELETE FROM data WHERE id IN (SELECT data FROM chunk WHERE run=?)", (run,))
    connection.execute("DELETE FROM times WHERE id IN (SELECT times FROM chunk WHERE run=?)", (run,))
    for table in ("chunk", "pack", "run", "damaged"):
        connection.execute(f"DELETE FROM {table} WHERE run=?", (run,))


def drop_before(months: Months, t_ms: int) -> None:
    """Delete the files of months that ended before a time, and what ended before it in the month it
    lies in.
    """
    for month in months.there():
        if start_ms(month + 1) <= t_ms:
            months.remove(month)
    for month, _ in months.aside():
        if start_ms(month + 1) <= t_ms:
            months.remove_aside(month)
    month = month_of(t_ms)
    if month in months.there():
        _drop_in_month(months, month, t_ms)


def _drop_in_month(months: Months, month: Month, t_ms: int) -> None:
    connection = months.writer(month)
    with database.failing(months.path(month)):
        older = [run for (run,) in connection.execute("SELECT run FROM run WHERE t0 < ?", (t_ms,))]
        for first in range(0, len(older), _RUNS_AT_ONCE):
            with database.transaction(connection):
                for run in older[first : first + _RUNS_AT_ONCE]:
                    _drop_of_run(connection, month, run, t_ms)
        (left,) = connection.execute("SELECT count(*) FROM run").fetchone()
        if left:
            database.give_back(connection)
    if not left:
        months.remove(month)


def _drop_of_run(connection: sqlite3.Connection, month: Month, run: int, t_ms: int) -> None:
    """Delete a run's chunks and packs that ended before a time."""
    (t1,) = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
    if t1 < t_ms:
        delete_run(connection, month, run)
        return
    day_rollup.forget(connection, month, run, start_ms(month), t_ms)
    writer = Writer(connection)
    writer.remove(chunk for chunk in chunks.of_run(connection, run) if chunk.t1 < t_ms)
    writer.write()
    connection.execute("DELETE FROM pack WHERE run=? AND t1 < ?", (run, t_ms))
    _recount(connection, run)


def _recount(connection: sqlite3.Connection, run: int) -> None:
    """Bring a run's row up to date with what is left of it."""
    left = chunks.of_run(connection, run)
    packed = packs.of_run(connection, run)
    if not left and not packed:
        connection.execute("DELETE FROM run WHERE run=?", (run,))
        return
    ticks = sum(chunk.ticks for chunk in left) + sum(pack.samples for pack in packed)
    chunks_t1 = max((chunk.t1 for chunk in left), default=None)
    t0 = min([chunk.t0 for chunk in left] + [pack.t0 for pack in packed])
    connection.execute("UPDATE run SET t0=?, chunks_t1=?, samples=? WHERE run=?", (t0, chunks_t1, ticks, run))


def shrink_to(months: Months, size_bytes: int, size: Callable[[], int]) -> None:
    """Drop day after day, the oldest first, until `size()` says that it is enough or nothing is left."""
    cut = 0
    while size() > size_bytes and (there := sorted({*months.there(), *(one for one, _ in months.aside())})):
        oldest = None
        if there[0] in months.there():
            with database.failing(months.path(there[0])):
                (oldest,) = months.writer(there[0]).execute("SELECT min(t0) FROM run").fetchone()
        end = start_ms(there[0] + 1)
        # A chunk may reach from one day into the next: then the next cut finds it.
        cut = end if oldest is None else min(max(cut, day_of(oldest) * DAY_MS) + DAY_MS, end)
        drop_before(months, cut)
