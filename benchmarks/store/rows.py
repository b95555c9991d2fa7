"""For comparison: the simplest store, a SQLite row for every point."""

from __future__ import annotations

import os
import sqlite3

import numpy as np

from benchmarks.store.dataset import METRICS, Fleet, RunSamples
from benchmarks.store.measure import Numbers, drop_from_cache, memory_mb, once_ms, repeated_ms, size, spent
from runvitals.base.buckets import Buckets, Grid, grid, reduce

INGESTED = 600_000


def measure(fleet: Fleet, runs: int, folder: str) -> Numbers:
    """Measure at most four runs: rows are slow, and their cost does not depend on the number of runs."""
    samples = [fleet.run(number) for number in range(min(runs, 4))]
    before_mb = memory_mb()
    path = os.path.join(folder, "rows.db")
    connection = _open(path)
    numbers = _ingest(connection, samples[:2], 32) | _ingest(connection, samples[2:], 1)
    connection.execute("DELETE FROM sample")
    points = sum(run.values.size for run in samples)
    with spent() as filling:
        for run in samples:
            for first in range(0, len(run.t), 1000):
                _insert(connection, [_rows(run, first, 1000)])
    numbers["fill, points/s"] = points / filling.wall_s
    numbers["fill, us CPU/point"] = filling.cpu_s / points * 1e6
    numbers["memory after filling, MB"] = memory_mb() - before_mb
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    numbers["bytes/point"] = size(folder) / points

    run = samples[0]
    on = grid(int(run.t[0]), int(run.t[-1]), 1000)
    drop_from_cache(folder)
    connection = _open(path)
    numbers["chart of 8 series, cold ms"] = once_ms(lambda: _chart(connection, run.run, on))
    numbers["chart of 8 series, warm ms"] = repeated_ms(lambda: _chart(connection, run.run, on), 5)
    connection.close()
    return numbers


def _open(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("page_size=8192", "journal_mode=WAL", "synchronous=FULL", "cache_size=-64000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS sample (series INTEGER, t INTEGER, value REAL, PRIMARY KEY (series, t)) "
        "WITHOUT ROWID"
    )
    return connection


def _rows(run: RunSamples, first: int, ticks: int) -> list[tuple[int, int, float]]:
    times = run.t[first : first + ticks].tolist()
    return [
        (run.run * 1000 + metric, t, value)
        for metric, column in zip(METRICS, run.values[first : first + ticks].T.tolist(), strict=True)
        for t, value in zip(times, column, strict=True)
    ]


def _insert(connection: sqlite3.Connection, batches: list[list[tuple[int, int, float]]]) -> None:
    connection.execute("BEGIN")
    for rows in batches:
        connection.executemany("REPLACE INTO sample VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")


def _ingest(connection: sqlite3.Connection, samples: list[RunSamples], group: int) -> Numbers:
    """Batches of 10 ticks, `group` of them per durable commit."""
    batches = [_rows(run, first, 10) for first in range(0, INGESTED // 1200, 10) for run in samples]
    points = sum(map(len, batches))
    waits = []
    with spent() as cost:
        for first in range(0, len(batches), group):
            batch_group = batches[first : first + group]
            waits.append(once_ms(lambda batch_group=batch_group: _insert(connection, batch_group)))  # type: ignore[misc]
    name = f"ingest {len(METRICS)}x10 by {group}"
    return {
        f"{name}, points/s": points / cost.wall_s,
        f"{name}, us CPU/point": cost.cpu_s / points * 1e6,
        f"{name}, ack p50 ms": float(np.percentile(waits, 50)),
        f"{name}, ack p99 ms": float(np.percentile(waits, 99)),
    }


def _chart(connection: sqlite3.Connection, run: int, on: Grid) -> list[Buckets]:
    charts = []
    for metric in METRICS[:8]:
        rows = connection.execute(
            "SELECT t, value FROM sample WHERE series=? AND t BETWEEN ? AND ?",
            (run * 1000 + metric, on.t0_ms, on.t0_ms + on.count * on.width_ms),
        ).fetchall()
        table = np.array(rows)
        charts.append(reduce(on, table[:, 0].astype(np.int64), table[:, 1]))
    return charts
