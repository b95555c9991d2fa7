"""Collects the buckets and samples of many runs, and combines them into aggregates in one step at the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.base.buckets import Buckets, Floats, Grid, Integers, combine
from runvitals.store.samples.interface import MetricAggregate
from runvitals.store.samples.sqlite import chunk_summary
from runvitals.store.samples.sqlite.day_rollup import DAY_MS

Day = tuple[int, int, bytes]
"""Run, day, summary: a row of the day roll-up."""


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """The arguments of `SampleStore.aggregate`."""

    metric: int
    runs: frozenset[int]
    t0: int
    t1: int
    bucket_ms: int | None
    group_by: Mapping[int, int] | None

    def grid(self) -> Grid:
        """Return the buckets of the query; one without a width."""
        if self.bucket_ms is None:
            return Grid(self.t0, max(self.t1 - self.t0 + 1, 1), 1)
        first = self.t0 // self.bucket_ms
        return Grid(first * self.bucket_ms, self.bucket_ms, self.t1 // self.bucket_ms - first + 1)

    def whole_days(self, days: range) -> set[int]:
        """Return the days that are completely in the range, and within one bucket."""
        in_range = range(max(days.start, -(-self.t0 // DAY_MS)), min(days.stop, (self.t1 + 1) // DAY_MS))
        if self.bucket_ms is None:
            return set(in_range)
        width = self.bucket_ms
        return {day for day in in_range if day * DAY_MS // width == ((day + 1) * DAY_MS - 1) // width}


class AggregateSums:
    """Collects the parts of an aggregate.

    Attributes:
        on: the bucket grid.
    """

    def __init__(self, query: AggregateQuery) -> None:
        self.query = query
        self.on = query.grid()
        self._groups: list[Integers] = []
        self._parts: list[Buckets] = []
        self._samples: list[tuple[int, Integers, Floats]] = []

    def add(self, run: int, parts: Iterable[Buckets]) -> None:
        """Add buckets of a run."""
        group = self._group(run)
        for part in parts:
            self._groups.append(np.full(len(part.t), group))
            self._parts.append(part)

    def add_samples(self, run: int, t: Integers, values: Floats) -> None:
        """Add samples of a run; those outside the range are ignored.

        They are put into buckets at the end, which is ten times as fast for thousands of short runs.
        """
        self._samples.append((self._group(run), t, values))

    def add_many(self, runs: Sequence[int], t: Integers, values: Floats) -> None:
        """Add samples of many runs; `t` and `values` are of shape (runs, samples)."""
        groups = np.array([self._group(run) for run in runs], np.int64)
        self._add_in_buckets(np.repeat(groups, t.shape[1]), t.ravel(), values.ravel())

    def add_days(self, days: Sequence[Day]) -> None:
        """Add rows of the roll-up."""
        runs, day_numbers, packed = zip(*days, strict=True)
        summaries = chunk_summary.unpack(packed)
        columns = (summaries[name] for name in ("min", "max", "mean", "last"))
        self._groups.append(np.array([self._group(run) for run in runs], np.int64))
        self._parts.append(
            Buckets(self._starts(np.array(day_numbers) * DAY_MS), summaries["n"].astype(np.int64), *columns)
        )

    def aggregates(self) -> list[MetricAggregate]:
        """Return the groups that contain a value, ascending."""
        if self._samples:
            self._put_samples_into_buckets()
        if not self._parts:
            return []
        groups = np.concatenate(self._groups)
        t, n, low, high, mean = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in ("t", "n", "min", "max", "mean")
        )
        rows = np.flatnonzero(n > 0)
        rows = rows[np.lexsort((t[rows], groups[rows]))]
        groups, t = groups[rows], t[rows]
        first = np.append(True, (groups[1:] != groups[:-1]) | (t[1:] != t[:-1]))[: len(rows)]
        # All groups in one call: each (group, bucket) is numbered, and its number used as the time. The last
        # value over many runs has no meaning.
        numbers = np.cumsum(first) - 1
        low, high, mean = low[rows], high[rows], mean[rows]
        buckets = combine([Buckets(numbers, n[rows], low, high, mean, mean)])
        groups, t = groups[first], t[first]
        edges = np.flatnonzero(np.diff(groups)) + 1
        return [
            MetricAggregate(
                *(int(groups[first]), t[first:end], buckets.n[first:end]),
                *(buckets.min[first:end], buckets.max[first:end], buckets.mean[first:end]),
            )
            for first, end in itertools.pairwise([0, *edges.tolist(), len(groups)])
            if end > first
        ]

    def _put_samples_into_buckets(self) -> None:
        lengths = [len(t) for _, t, _ in self._samples]
        groups = np.repeat(np.array([group for group, _, _ in self._samples], np.int64), lengths)
        t = np.concatenate([t for _, t, _ in self._samples])
        values = np.concatenate([values for _, _, values in self._samples])
        self._add_in_buckets(groups, t, values)

    def _add_in_buckets(self, groups: Integers, t: Integers, values: Floats) -> None:
        """Add samples, with the group of each."""
        rows = (t >= self.query.t0) & (t <= self.query.t1) & ~np.isnan(values)
        t, values = t[rows], values[rows]
        self._groups.append(groups[rows])
        ones = np.ones(len(t), np.int64)
        self._parts.append(Buckets(self._starts(t), ones, values, values, values, values))

    def _starts(self, t: Integers) -> Integers:
        """Return the start of the bucket of each time."""
        return self.on.t0_ms + (t - self.on.t0_ms) // self.on.width_ms * self.on.width_ms

    def _group(self, run: int) -> int:
        return 0 if self.query.group_by is None else self.query.group_by[run]
