"""The day roll-up: a summary per metric, day and run.

With it, a query over a fleet and a month reads 31 rows per run instead of its chunks.

Days of runs with chunks are rolled up when they are over. A write to a rolled-up day removes its summaries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from runvitals.base.buckets import Buckets, Grid, combine
from runvitals.store.samples.sqlite import chunk_summary, chunks, packs
from runvitals.store.samples.sqlite.month_files import Month, start_ms
from runvitals.store.samples.sqlite.series import RunMonth

DAY_MS = 86_400_000


def day_of(t_ms: int) -> int:
    """Days since 1970."""
    return t_ms // DAY_MS


def days_of(month: Month) -> range:
    """Return the days of a month."""
    return range(day_of(start_ms(month)), day_of(start_ms(month + 1)))


def rolled_days(month: Month, rolled: int) -> list[int]:
    """Return the days that are rolled up, from the bits in column `rolled`."""
    first = days_of(month).start
    return [first + bit for bit in range(31) if rolled >> bit & 1]


def forget(connection: sqlite3.Connection, month: Month, run: int, t0: int, t1: int) -> None:
    """Remove the summaries of days that overlap a range, inside a transaction."""
    row = connection.execute("SELECT rolled FROM run WHERE run=?", (run,)).fetchone()
    if row is None or not row[0]:
        return
    touched = [day for day in rolled_days(month, row[0]) if day_of(t0) <= day <= day_of(t1)]
    if not touched:
        return
    metrics = _metrics(connection, run)
    connection.executemany(
        "DELETE FROM rollup WHERE metric=? AND day=? AND run=?",
        [(metric, day, run) for metric in metrics for day in touched],
    )
    _set_bits(connection, month, run, touched, rolled=False)


def roll_up(connection: sqlite3.Connection, month: Month, run: int, before_ms: int) -> None:
    """Roll up the days of a run that ended before a time, inside a transaction.

    Raises:
        ColdUnavailable: samples in cold storage are needed for it.
    """
    t0, t1, chunks_t1, rolled = connection.execute(
        "SELECT t0, t1, chunks_t1, rolled FROM run WHERE run=?", (run,)
    ).fetchone()
    if chunks_t1 is None:
        return
    done = set(rolled_days(month, rolled))
    due = [
        day
        for day in range(day_of(t0), day_of(t1) + 1)
        if day not in done and (day + 1) * DAY_MS <= before_ms
    ]
    if not due:
        return
    on = Grid(due[0] * DAY_MS, DAY_MS, due[-1] - due[0] + 1)
    series = RunMonth(connection, run, (), on.t0_ms, (due[-1] + 1) * DAY_MS - 1)
    rows = []
    for metric, parts in series.buckets(sorted(series.metrics()), on):
        buckets = combine(parts)
        is_due = np.isin(buckets.t // DAY_MS, due)
        days = (buckets.t[is_due] // DAY_MS).tolist()
        rows += [
            (metric, day, run, packed.tobytes())
            for day, packed in zip(days, _summaries(buckets)[is_due], strict=True)
        ]
    if series.unavailable is not None:
        raise series.unavailable
    if series.damaged:
        return  # a roll-up without the damaged samples would hide the damage
    connection.executemany("REPLACE INTO rollup VALUES (?, ?, ?, ?)", rows)
    _set_bits(connection, month, run, due, rolled=True)


def _summaries(buckets: Buckets) -> chunk_summary.Summaries:
    summaries = np.zeros(len(buckets.t), chunk_summary.DTYPE)
    for name in ("n", "min", "max", "mean", "last"):
        summaries[name] = getattr(buckets, name)
    return summaries


def _set_bits(
    connection: sqlite3.Connection, month: Month, run: int, days: Sequence[int], *, rolled: bool
) -> None:
    first = days_of(month).start
    bits = sum(1 << (day - first) for day in days)
    change = "rolled | ?" if rolled else "rolled & ~?"
    connection.execute(f"UPDATE run SET rolled = {change} WHERE run=?", (bits, run))


def _metrics(connection: sqlite3.Connection, run: int) -> set[int]:
    packed = {metric for pack in packs.of_run(connection, run) for metric in pack.metrics}
    return packed.union(chunks.metrics_of(connection, run))
