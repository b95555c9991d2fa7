"""Turns batches into rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.store.samples.clickhouse.connection import Rows
from runvitals.store.samples.clickhouse.schema import BATCHES, EXTENTS, SAMPLES
from runvitals.store.samples.interface import SampleBatch

_YEAR, _MONTHS = 100, 12
_MONTHS_PER_INSERT = 100
"""ClickHouse rejects rows of more partitions in one INSERT."""


class AcceptedBatch(NamedTuple):
    """A batch, and when this server accepted it: µs UTC, larger than those of all batches before."""

    version: int
    batch: SampleBatch


def month_numbers(t: Integers) -> Integers:
    """Return the months of times, ms UTC, as numbers such as 202611."""
    months = t.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    return (1970 + months // _MONTHS) * _YEAR + months % _MONTHS + 1


def month_number(t_ms: int) -> int:
    """Return the month of a time, ms UTC, as a number such as 202611."""
    return int(month_numbers(np.array([t_ms], np.int64))[0])


def month_end_ms(month: int) -> int:
    """Return the first millisecond after a month, given as a number such as 202611."""
    months = (month // _YEAR - 1970) * _MONTHS + month % _YEAR
    return int(np.array([months], "datetime64[M]").astype("datetime64[ms]").astype(np.int64)[0])


def sample_rows(accepted: Sequence[AcceptedBatch]) -> Rows:
    """Return the rows of the table `samples`."""
    parts = [_rows_of(version, batch) for version, batch in accepted if batch.values.size]
    return np.concatenate(parts) if parts else np.empty(0, SAMPLES)


def _rows_of(version: int, batch: SampleBatch) -> Rows:
    t, values = _last_of_equal_times(batch.t, batch.values)
    ticks, columns = values.shape
    rows = np.empty((columns, ticks), SAMPLES)
    rows["run"], rows["version"] = batch.run, version
    rows["metric"] = np.array(batch.metrics, np.uint32)[:, np.newaxis]
    rows["t"], rows["month"] = t, month_numbers(t)
    rows["value"] = values.T
    return rows.reshape(-1)


def _last_of_equal_times(t: Integers, values: Floats) -> tuple[Integers, Floats]:
    """Return the rows of a batch without those that a later row of the same time replaces."""
    if len(t) < 2 or bool((t[1:] > t[:-1]).all()):
        return t, values
    _, from_end = np.unique(t[::-1], return_index=True)
    kept = len(t) - 1 - from_end
    return t[kept], values[kept]


def by_months(rows: Rows) -> Iterator[Rows]:
    """Rows of `samples` in parts, each with as many months as one INSERT may have."""
    if not len(rows):
        return
    months = rows["month"]
    if int(months.min()) == int(months.max()):
        yield rows
        return
    every = np.unique(months)
    for first in range(0, len(every), _MONTHS_PER_INSERT):
        part = every[first : first + _MONTHS_PER_INSERT]
        yield rows[(months >= part[0]) & (months <= part[-1])]


def batch_rows(accepted: Sequence[AcceptedBatch]) -> Rows:
    """Return the rows of the table `batches`."""
    listed = [(batch.run, batch.writer, batch.seq, version) for version, batch in accepted]
    return np.array(listed, BATCHES)


def extent_rows(accepted: Sequence[AcceptedBatch]) -> Rows:
    """Return the rows of the table `extents`: the last time of each run."""
    last: dict[int, int] = {}
    for _, batch in accepted:
        if batch.values.size:
            last[batch.run] = max(last.get(batch.run, -1), int(batch.t.max()))
    return np.array(sorted(last.items()), EXTENTS)
