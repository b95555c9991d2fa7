"""Reads series: as samples, on bucket grids, their newest values."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Grid, Integers, reduce
from runvitals.store.samples.clickhouse.connection import ClickHouse, Rows
from runvitals.store.samples.clickhouse.rows import month_number
from runvitals.store.samples.clickhouse.selection import SAMPLES, id_list, in_range, of_series
from runvitals.store.samples.interface import (
    LatestSample,
    ReadResult,
    SeriesBuckets,
    SeriesSamples,
)

_SAMPLE = np.dtype([("run", "<i8"), ("metric", "<u4"), ("t", "<i8"), ("value", "<f8")])
_BUCKET = np.dtype(
    [
        *(("run", "<i8"), ("metric", "<u4"), ("bucket", "<i8"), ("n", "<u8")),
        *(("min", "<f8"), ("max", "<f8"), ("sum", "<f8"), ("last", "<f8")),
    ]
)
_NEWEST = np.dtype([("run", "<i8"), ("metric", "<u4"), ("t", "<i8"), ("value", "<f8")])
_HINT = np.dtype([("run", "<i8"), ("metric", "<u4"), ("t", "<i8")])
_COUNT = np.dtype([("n", "<u8")])
_TIME = np.dtype([("run", "<i8"), ("t", "<i8")])
_RUN = np.dtype([("run", "<i8")])
_AT_ONCE = 5000
_TERMS_AT_ONCE = 50
_SAME_AGE_MS = 600_000

T = TypeVar("T")
Series = TypeVar("Series", SeriesSamples, SeriesBuckets)

BUCKET_COLUMNS = """countIf(NOT isNaN(value)) AS n, minIf(value, NOT isNaN(value)) AS low,
    maxIf(value, NOT isNaN(value)) AS high, sumIf(value, NOT isNaN(value)) AS sum"""


class ClickHouseReader:
    """Reads from the tables of samples.

    Args:
        raw_samples: more samples than this are put into buckets by ClickHouse.
    """

    def __init__(self, clickhouse: ClickHouse, raw_samples: int) -> None:
        self._clickhouse = clickhouse
        self._raw_samples = raw_samples

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        """Read the samples of series as they were written."""
        series = self._samples(runs, metrics, t0_ms, t1_ms)
        return ReadResult(_in_order(runs, series), [])

    def _samples(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> list[SeriesSamples]:
        if not runs or (metrics is not None and not metrics):
            return []
        rows = self._clickhouse.select(
            f"SELECT run, metric, t, value FROM {SAMPLES} WHERE {of_series(runs, metrics)} "
            f"AND {in_range(t0_ms, t1_ms)} ORDER BY run, metric, t",
            _SAMPLE,
        )
        return [
            SeriesSamples(run, metric, np.ascontiguousarray(part["t"]), np.ascontiguousarray(part["value"]))
            for run, metric, part in _by_series(rows)
        ]

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        """Read the series on a bucket grid."""
        t0_ms, t1_ms = on.t0_ms, on.t0_ms + on.count * on.width_ms - 1
        if not runs or (metrics is not None and not metrics):
            return ReadResult([], [])
        condition = f"{of_series(runs, metrics)} AND {in_range(t0_ms, t1_ms)}"
        count = self._clickhouse.select(f"SELECT count() AS n FROM samples WHERE {condition}", _COUNT)
        if int(count["n"][0]) > self._raw_samples:
            return ReadResult(_in_order(runs, self._buckets(condition, on)), [])
        buckets = []
        for series in self._samples(runs, metrics, t0_ms, t1_ms):
            deadline.check()
            buckets.append(SeriesBuckets(series.run, series.metric, reduce(on, series.t, series.values)))
        return ReadResult(_in_order(runs, buckets), [])

    def _buckets(self, condition: str, on: Grid) -> list[SeriesBuckets]:
        """Buckets that ClickHouse computes. It adds in another order: the last bits of means may differ."""
        rows = self._clickhouse.select(
            f"SELECT run, metric, intDiv(t - {on.t0_ms}, {on.width_ms}) AS bucket, {BUCKET_COLUMNS}, "
            f"argMaxIf(value, t, NOT isNaN(value)) FROM {SAMPLES} WHERE {condition} "
            "GROUP BY run, metric, bucket ORDER BY run, metric, bucket",
            _BUCKET,
        )
        buckets = []
        for run, metric, part in _by_series(rows):
            n = part["n"].astype(np.int64)
            low, high, mean = statistics(part, n)
            last = np.where(n > 0, part["last"], np.nan)
            times = on.t0_ms + part["bucket"] * on.width_ms
            buckets.append(SeriesBuckets(run, metric, Buckets(times, n, low, high, mean, last)))
        return buckets

    def active_runs(self, since_ms: int) -> list[int]:
        """Return the ids, ascending, of the runs with a sample at or after this time."""
        rows = self._clickhouse.select(
            f"SELECT DISTINCT run FROM extents WHERE last >= {since_ms} ORDER BY run", _RUN
        )
        return [int(run) for run in rows["run"]]

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        """Return the time of the last sample of each run that has any, ms UTC."""
        times: dict[int, int] = {}
        for batch in _parts(runs):
            rows = self._clickhouse.select(
                f"SELECT run, max(last) AS t FROM extents WHERE run IN ({id_list(batch)}) GROUP BY run", _TIME
            )
            times.update(rows.tolist())
        return times

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None) -> list[LatestSample]:
        """Return the newest values of runs, of these metrics or all."""
        if metrics is not None and not metrics:
            return []
        newest: dict[int, LatestSample] = {}
        for batch in _parts(runs):
            for run, rows in _by_run(self._newest(batch, metrics)):
                newest[run] = LatestSample(
                    run,
                    rows["metric"].astype(np.int64),
                    np.ascontiguousarray(rows["t"]),
                    np.ascontiguousarray(rows["value"]),
                )
        return [newest[run] for run in runs if run in newest]

    def _newest(self, runs: Sequence[int], metrics: Collection[int] | None) -> Rows:
        """Return the newest value of each series, in order."""
        hints = self._clickhouse.select(
            f"SELECT run, metric, max(t) AS t FROM series WHERE {of_series(runs, metrics)} "
            "GROUP BY run, metric ORDER BY run, metric",
            _HINT,
        )
        if not len(hints):
            return np.empty(0, _NEWEST)
        rows = self._newest_since(hints)
        recent = set(rows[["run", "metric"]].tolist())
        # Their values were replaced by gaps since: the newest is somewhere before.
        older = [series for series in hints[["run", "metric"]].tolist() if series not in recent]
        if older:
            every = np.zeros(len(older), _HINT)
            every["run"], every["metric"] = np.array(older).T
            rows = np.concatenate((rows, self._newest_since(every)))
            rows = rows[np.lexsort((rows["metric"], rows["run"]))]
        return rows

    def _newest_since(self, hints: Rows) -> Rows:
        """Return the newest values of series that have one since the time of their hint."""
        parts = [np.empty(0, _NEWEST)]
        for terms in _parts(list(_terms(hints)), _TERMS_AT_ONCE):
            deadline.check()
            since_ms = min(since for since, _ in terms)
            condition = " OR ".join(f"({condition} AND t >= {since})" for since, condition in terms)
            rows = self._clickhouse.select(
                "SELECT run, metric, max(t), argMax(value, t) FROM "
                f"(SELECT run, metric, t, value FROM {SAMPLES} "
                f"WHERE month >= {month_number(since_ms)} AND ({condition})) "
                "WHERE NOT isNaN(value) GROUP BY run, metric",
                _NEWEST,
            )
            parts.append(rows)
        _, first = np.unique(np.concatenate(parts)[["run", "metric"]], return_index=True)
        return np.concatenate(parts)[first]  # in order; a series found twice has the same newest value


def _terms(hints: Rows) -> Iterator[tuple[int, str]]:
    """Yield the earliest time of hints that are about as old, with the condition on their series."""
    ages = hints["t"] // _SAME_AGE_MS
    for age in np.unique(ages):
        series = hints[ages == age]
        runs, metrics = np.unique(series["run"]).tolist(), np.unique(series["metric"]).tolist()
        yield int(series["t"].min()), of_series(runs, metrics)


def statistics(part: Rows, n: Integers) -> tuple[Floats, Floats, Floats]:
    """Minimum, maximum and mean of buckets; NaN without values."""
    has_values = n > 0
    low, high = np.where(has_values, part["min"], np.nan), np.where(has_values, part["max"], np.nan)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.minimum(np.maximum(part["sum"] / n, low), high)
    return low, high, mean


def _by_series(rows: Rows) -> Iterator[tuple[int, int, Rows]]:
    """Ordered rows, in parts of one series."""
    if not len(rows):
        return
    changes = (rows["run"][1:] != rows["run"][:-1]) | (rows["metric"][1:] != rows["metric"][:-1])
    for first, end in itertools.pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), len(rows)]):
        yield int(rows["run"][first]), int(rows["metric"][first]), rows[first:end]


def _by_run(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Ordered rows, in parts of one run."""
    if not len(rows):
        return
    changes = np.flatnonzero(rows["run"][1:] != rows["run"][:-1]) + 1
    for first, end in itertools.pairwise([0, *changes.tolist(), len(rows)]):
        yield int(rows["run"][first]), rows[first:end]


def _in_order(runs: Sequence[int], series: list[Series]) -> list[Series]:
    """Series by run, in the order given, then by metric."""
    position = {run: index for index, run in enumerate(dict.fromkeys(runs))}
    return sorted(series, key=lambda entry: (position[entry.run], entry.metric))


def _parts(items: Sequence[T], size: int = _AT_ONCE) -> Iterator[Sequence[T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
