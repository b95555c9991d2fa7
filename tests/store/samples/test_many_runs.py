"""Aggregates over so many runs that tables are scanned: same results, and damage affects a single run."""

from __future__ import annotations

import os
import sqlite3

import numpy as np
import pytest

from runvitals.store.samples.interface import MetricAggregate, SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from tests.store.samples.conformance import T0

SMALL = StoreSettings(chunk_ticks=100, pack_ticks=50)
RUNS = 400
SECOND = 1000


@pytest.fixture
def store(folder: str) -> SqliteChunks:
    """Runs with different metrics, gaps, chunks, and some that were written to again."""
    store = SqliteChunks(folder, SMALL)
    rng = np.random.default_rng(3)
    for run in range(RUNS):
        ticks = 120 if run % 50 == 0 else 5 + run % 3
        metrics = (1, 2, 3) if run % 4 else (3, 1)
        values = rng.random((ticks, len(metrics)))
        values[rng.random(values.shape) < 0.2] = np.nan
        store.append([SampleBatch(run, 1, 1, metrics, T0 + SECOND * (run + np.arange(ticks)), values)])
    store.flush()
    for run in range(0, RUNS, 40):
        store.append([SampleBatch(run, 1, 2, (1,), T0 + SECOND * (run + np.arange(3)), np.full((3, 1), 9.0))])
        if run == 200:
            store.flush()
    return store


def by_group_and_time(aggregates: list[MetricAggregate]) -> dict[tuple[int, int], tuple[int, float, float]]:
    return {
        (aggregate.group, int(t)): (int(n), float(low), float(high))
        for aggregate in aggregates
        for t, n, low, high in zip(aggregate.t, aggregate.n, aggregate.min, aggregate.max, strict=True)
    }


@pytest.mark.parametrize("bucket_ms", [None, 10 * SECOND])
@pytest.mark.parametrize("metric", [1, 2, 3])
def test_many_runs_give_the_same_as_each_run_separately(
    store: SqliteChunks, metric: int, bucket_ms: int | None
) -> None:
    t0, t1 = T0 + 30 * SECOND, T0 + (RUNS - 20) * SECOND
    groups: dict[int, int] = {run: run for run in range(RUNS)}
    combined = store.aggregate(metric, range(RUNS), t0, t1, bucket_ms, groups)
    separate = [store.aggregate(metric, [run], t0, t1, bucket_ms, groups) for run in range(RUNS)]
    assert combined.damaged == []
    expected = by_group_and_time([series for result in separate for series in result.series])
    assert len(expected) > 300 if metric == 1 else expected
    assert by_group_and_time(combined.series) == expected
    store.close()


def test_a_damaged_pack_affects_a_single_run(store: SqliteChunks) -> None:
    store.close()
    path = os.path.join(store.folder, "samples-2026-10.db")
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE pack SET body = CAST(substr(body, 1, 20) || x'00ff' AS BLOB) WHERE run=7")
    connection.close()
    with SqliteChunks(store.folder, SMALL) as again:
        (all_runs,) = again.aggregate(3, range(RUNS), 0, 2 * T0).series
        (without,) = again.aggregate(3, [run for run in range(RUNS) if run != 7], 0, 2 * T0).series
        assert all_runs.n.tolist() == without.n.tolist()
        assert [damaged.run for damaged in again.aggregate(3, range(RUNS), 0, 2 * T0).damaged] == [7]
