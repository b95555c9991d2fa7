"""Aggregates a metric over many runs: whole days from the day roll-up, the rest from chunks and memory."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from runvitals.base import deadline
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.interface import END_OF_TIME_MS, DamagedData, MetricAggregate, ReadResult
from runvitals.store.samples.sqlite import day_rollup, packs
from runvitals.store.samples.sqlite.aggregation_sums import AggregateQuery, AggregateSums, Day
from runvitals.store.samples.sqlite.blocks import Block, groups
from runvitals.store.samples.sqlite.day_rollup import DAY_MS
from runvitals.store.samples.sqlite.month_files import Month, start_ms
from runvitals.store.samples.sqlite.packs import Pack
from runvitals.store.samples.sqlite.reader import Reader, by_month
from runvitals.store.samples.sqlite.series import RunMonth

_FEW_RUNS = 200
"""For more runs than this, tables are scanned instead of queried run by run."""


def aggregate(reader: Reader, query: AggregateQuery) -> ReadResult[MetricAggregate]:
    """Run a query."""
    in_memory = by_month(reader.heads.blocks(query.runs))
    covering = reader.months.covering(query.t0, query.t1)
    months = {*covering, *itertools.chain.from_iterable(in_memory.values())}
    sums = AggregateSums(query)
    damaged = reader.unreadable_months(query.t0, query.t1)
    for month in sorted(months):
        blocks = {run: months[month] for run, months in in_memory.items() if month in months}
        with reader.connection(month, damaged) as connection:
            damaged += _MonthAggregate(reader, month, connection, blocks, sums).add()
    return ReadResult(sums.aggregates(), damaged)


class _RunExtent(NamedTuple):
    """A run in a month file.

    Its first and last time, whether it has chunks, and the days that are read from the roll-up.
    """

    t0: int
    t1: int
    has_chunks: bool
    rolled: set[int]


class _MonthAggregate:
    """Adds the samples of one month to the sums.

    Args:
        connection: to the month file; None if it does not exist.
        blocks: samples of the month in memory, by run.
    """

    def __init__(
        self,
        reader: Reader,
        month: Month,
        connection: sqlite3.Connection | None,
        blocks: Mapping[int, list[Block]],
        sums: AggregateSums,
    ) -> None:
        self._reader = reader
        self._month = month
        self._connection = connection
        self._blocks = blocks
        self._sums = sums
        self._query = sums.query

    def add(self) -> list[DamagedData]:
        """Add the samples of this month. Returns what could not be read."""
        damaged: list[DamagedData] = []
        runs: dict[int, _RunExtent] = {}
        packed: dict[int, list[Pack]] = {}
        if self._connection is not None:
            try:
                runs = self._runs(self._connection)
                days = self._days(self._connection, runs)
                if len(runs) > _FEW_RUNS:
                    for run in self._add_same_shape(self._connection, runs):
                        del runs[run]
                packed = self._packs(self._connection, runs)
            except sqlite3.Error as error:
                damaged.append(self._reader.damage(self._month, error))
                self._connection, runs = None, {}
            else:
                if days:
                    self._sums.add_days(days)
        for run in {**runs, **self._blocks}:
            deadline.check()
            if run in runs and runs[run].has_chunks:
                damaged += self._add_chunks(run, runs[run], packed.get(run, []))
            else:
                damaged += self._add_unchunked(run, packed.get(run, []))
        return damaged

    def _add_same_shape(self, connection: sqlite3.Connection, runs: Mapping[int, _RunExtent]) -> list[int]:
        """Add runs that have only packs, many at a time. Returns the runs that were added."""
        unchunked = {run for run, row in runs.items() if not row.has_chunks} - self._blocks.keys()
        query = self._query
        shapes = packs.of_same_shape(connection, unchunked, query.metric, query.t0, query.t1)
        counts = Counter(run for shape in shapes for run in shape.runs)
        # Runs with the metric in several packs are added separately, because their packs must be merged.
        separately = {run for run, count in counts.items() if count > 1}
        for shape in shapes:
            series = None if separately.intersection(shape.runs) else shape.series()
            if series is None:
                separately.update(shape.runs)
            else:
                self._sums.add_many(shape.runs, *series)
        return list(unchunked - separately)

    def _add_chunks(self, run: int, row: _RunExtent, packed: list[Pack]) -> list[DamagedData]:
        blocks = self._blocks.get(run, [])
        extent = (0, END_OF_TIME_MS) if blocks else (row.t0, row.t1)
        damaged: list[DamagedData] = []
        for part in self._ranges(extent, row.rolled):
            damaged += self._reader.visit_run(
                self._connection, self._month, run, blocks, part, self._visit, packed
            )
        return damaged

    def _visit(self, month: RunMonth) -> None:
        for _, parts in list(month.buckets([self._query.metric], self._sums.on)):
            self._sums.add(month.run, parts)

    def _add_unchunked(self, run: int, packed: list[Pack]) -> list[DamagedData]:
        """Add a run without chunks."""
        damaged: list[DamagedData] = []
        blocks = list(self._blocks.get(run, []))
        if len(packed) == 1 and not blocks:
            return self._add_pack(packed[0])
        for pack in packed:
            try:
                blocks.insert(0, pack.block())
            except CorruptData as error:
                damaged.append(DamagedData(run, None, pack.t0, pack.t1, f"a pack: {error}"))
        for group in groups(blocks, {self._query.metric}):
            self._sums.add_samples(run, group.t, group.values[:, 0])
        return damaged

    def _add_pack(self, pack: Pack) -> list[DamagedData]:
        """Add a run with a single pack, which needs no merging."""
        try:
            series = pack.series(self._query.metric)
        except CorruptData as error:
            return [DamagedData(pack.run, None, pack.t0, pack.t1, f"a pack: {error}")]
        if series is not None:
            self._sums.add_samples(pack.run, *series)
        return []

    def _runs(self, connection: sqlite3.Connection) -> dict[int, _RunExtent]:
        """Return the queried runs that are in the file."""
        whole_days = self._query.whole_days(day_rollup.days_of(self._month))
        extents = {}
        for run, t0, t1, chunks_t1, rolled in self._rows_of_runs(
            connection, "SELECT run, t0, t1, chunks_t1, rolled FROM run"
        ):
            days = (
                whole_days.intersection(day_rollup.rolled_days(self._month, rolled)) if rolled else set[int]()
            )
            if days:
                for block in self._blocks.get(run, []):
                    days.difference_update((block.t // DAY_MS).tolist())
            extents[run] = _RunExtent(t0, t1, chunks_t1 is not None, days)
        return extents

    def _days(self, connection: sqlite3.Connection, runs: Mapping[int, _RunExtent]) -> list[Day]:
        """Return the rows of the roll-up for the days of these runs."""
        days = set[int]().union(*(run.rolled for run in runs.values()))
        if not days:
            return []
        rows = connection.execute(
            "SELECT run, day, summary FROM rollup WHERE metric=? AND day BETWEEN ? AND ?",
            (self._query.metric, min(days), max(days)),
        )
        return [row for row in rows if row[0] in runs and row[1] in runs[row[0]].rolled]

    def _packs(self, connection: sqlite3.Connection, runs: Collection[int]) -> dict[int, list[Pack]]:
        """Return the packs of runs that overlap the range."""
        by_run: dict[int, list[Pack]] = {}
        if len(runs) <= _FEW_RUNS:
            return {run: packs.of_run(connection, run) for run in runs}
        for pack in packs.of_all(connection, self._query.t0, self._query.t1):
            if pack.run in runs:
                by_run.setdefault(pack.run, []).append(pack)
        return by_run

    def _rows_of_runs(
        self, connection: sqlite3.Connection, select: str
    ) -> Iterator[tuple[int, int, int, int | None, int]]:
        """Rows of a table for the queried runs; its first column is the run."""
        runs = self._query.runs
        if len(runs) <= _FEW_RUNS:
            ids = json.dumps(list(runs))
            yield from connection.execute(f"{select} WHERE run IN (SELECT value FROM json_each(?))", (ids,))
        else:
            yield from (row for row in connection.execute(select) if row[0] in runs)

    def _ranges(self, extent: tuple[int, int], excluded_days: set[int]) -> Iterator[tuple[int, int]]:
        """Yield the parts of an extent within the month and the queried range, without some days."""
        t0 = max(extent[0], self._query.t0, start_ms(self._month))
        end = min(extent[1], self._query.t1, start_ms(self._month + 1) - 1)
        for day in sorted(excluded_days):
            if t0 < day * DAY_MS:
                yield t0, day * DAY_MS - 1
            t0 = (day + 1) * DAY_MS
        if t0 <= end:
            yield t0, end
