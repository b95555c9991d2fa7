"""Reads and writes for `store.samples.migration`: runs, days, stored batches; samples without a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from runvitals.model.durations import DAY_MS
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.rows import by_months, month_numbers
from runvitals.store.samples.clickhouse.schema import BATCHES, EXTENTS, SAMPLES, SERIES
from runvitals.store.samples.interface import SeriesSamples

_COPIED = 1
"""The version of copied samples and batches: everything that a server accepts wins over them."""
_SEQ = np.dtype([("writer", "<i8"), ("seq", "<i8")])
_DAY = np.dtype([("day", "<i8")])
_RUN = np.dtype([("run", "<i8")])
_ROWS_AT_ONCE = 1_000_000


def runs(clickhouse: ClickHouse) -> list[int]:
    """Return the runs that have samples or stored batches, ascending."""
    every = "SELECT run FROM extents UNION ALL SELECT DISTINCT run FROM batches"
    rows = clickhouse.select(f"SELECT DISTINCT run FROM ({every}) ORDER BY run", _RUN)
    return [int(run) for run in rows["run"]]


def days(clickhouse: ClickHouse, run: int) -> list[int]:
    """Return the days since 1970 on which a run has samples, ascending."""
    rows = clickhouse.select(
        f"SELECT DISTINCT intDiv(t, {DAY_MS}) AS day FROM samples WHERE run = {run} ORDER BY day", _DAY
    )
    return [int(day) for day in rows["day"]]


def stored_batches(clickhouse: ClickHouse, run: int) -> dict[int, list[tuple[int, int]]]:
    """Ranges of the numbers of stored batches, by writer."""
    rows = clickhouse.select(
        f"SELECT DISTINCT writer, seq FROM batches WHERE run = {run} ORDER BY writer, seq", _SEQ
    )
    ranges_by_writer: dict[int, list[tuple[int, int]]] = {}
    for writer in np.unique(rows["writer"]).tolist():
        numbers = rows["seq"][rows["writer"] == writer]
        ends = np.append(numbers[1:] != numbers[:-1] + 1, True)
        starts = np.append(True, ends[:-1])
        ranges_by_writer[writer] = list(zip(numbers[starts].tolist(), numbers[ends].tolist(), strict=True))
    return ranges_by_writer


def put(clickhouse: ClickHouse, run: int, series: Sequence[SeriesSamples]) -> None:
    """Store samples of a run."""
    parts = []
    newest = []
    for samples in series:
        rows = np.empty(len(samples.t), SAMPLES)
        rows["month"], rows["run"], rows["metric"] = month_numbers(samples.t), run, samples.metric
        rows["t"], rows["value"], rows["version"] = samples.t, samples.values, _COPIED
        parts.append(rows)
        present = np.flatnonzero(~np.isnan(samples.values))
        if len(present):
            newest.append((run, samples.metric, int(samples.t[present[-1]])))
    last = max(int(samples.t[-1]) for samples in series)
    clickhouse.insert("extents", np.array([(run, last)], EXTENTS))
    for part in by_months(np.concatenate(parts)):
        clickhouse.insert("samples", part)
    if newest:
        clickhouse.insert("series", np.array(newest, SERIES))


def put_batches(clickhouse: ClickHouse, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
    """Note that batches were stored."""
    for writer, ranges in stored.items():
        for first, last in ranges:
            for start in range(first, last + 1, _ROWS_AT_ONCE):
                numbers = np.arange(start, min(start + _ROWS_AT_ONCE, last + 1), dtype=np.int64)
                rows = np.empty(len(numbers), BATCHES)
                rows["run"], rows["writer"], rows["seq"], rows["version"] = run, writer, numbers, _COPIED
                clickhouse.insert("batches", rows)
