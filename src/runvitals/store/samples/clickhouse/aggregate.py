"""Aggregates a metric over many runs, in ClickHouse."""

from __future__ import annotations

import itertools

import numpy as np

from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.reader import BUCKET_COLUMNS, statistics
from runvitals.store.samples.clickhouse.selection import SAMPLES, id_list, in_range, of_series
from runvitals.store.samples.interface import MetricAggregate, ReadResult
from runvitals.store.samples.sqlite.aggregation_sums import AggregateQuery

_BUCKET = np.dtype(
    [
        *(("group", "<i8"), ("bucket", "<i8"), ("n", "<u8")),
        *(("min", "<f8"), ("max", "<f8"), ("sum", "<f8")),
    ]
)


def aggregate(clickhouse: ClickHouse, query: AggregateQuery) -> ReadResult[MetricAggregate]:
    """Run a query."""
    if not query.runs or query.t1 < query.t0:
        return ReadResult([], [])
    on = query.grid()
    runs = sorted(query.runs)
    rows = clickhouse.select(
        f"SELECT {_group(query, runs)} AS group, intDiv(t - {on.t0_ms}, {on.width_ms}) AS bucket, "
        f"{BUCKET_COLUMNS} FROM {SAMPLES} WHERE {of_series(runs, [query.metric])} "
        f"AND {in_range(query.t0, query.t1)} GROUP BY group, bucket ORDER BY group, bucket",
        _BUCKET,
    )
    rows = rows[rows["n"] > 0]
    edges = np.flatnonzero(rows["group"][1:] != rows["group"][:-1]) + 1
    aggregates = []
    for first, end in itertools.pairwise([0, *edges.tolist(), len(rows)]):
        if end > first:
            part = rows[first:end]
            n = part["n"].astype(np.int64)
            times = on.t0_ms + part["bucket"] * on.width_ms
            aggregates.append(MetricAggregate(int(part["group"][0]), times, n, *statistics(part, n)))
    return ReadResult(aggregates, [])


def _group(query: AggregateQuery, runs: list[int]) -> str:
    if query.group_by is None:
        return "toInt64(0)"
    groups = (query.group_by[run] for run in runs)
    ids, numbers = (f"[{id_list(numbers)}]" for numbers in (runs, groups))
    return f"toInt64(transform(run, {ids}, {numbers}, 0))"
