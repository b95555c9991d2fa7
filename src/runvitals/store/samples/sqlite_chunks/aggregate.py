"""One metric over many runs: whole days from the day roll-up, the rest from chunks, packs and memory."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from runvitals import deadline
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.contract import END_OF_TIME_MS, DamagedData, MetricAggregate, ReadResult
from runvitals.store.samples.sqlite_chunks import day_rollup, packs
from runvitals.store.samples.sqlite_chunks.aggregation_sums import Day, Question, Tally
from runvitals.store.samples.sqlite_chunks.blocks import Block, groups
from runvitals.store.samples.sqlite_chunks.day_rollup import DAY_MS
from runvitals.store.samples.sqlite_chunks.month_files import Month, start_ms
from runvitals.store.samples.sqlite_chunks.packs import Pack
from runvitals.store.samples.sqlite_chunks.reader import Reader, by_month
from runvitals.store.samples.sqlite_chunks.series import RunMonth

_FEW = 200
"""For more runs than this a table is read from end to end rather than run by run."""


def aggregate(reader: Reader, question: Question) -> ReadResult[MetricAggregate]:
    """Answer a question."""
    in_memory = by_month(reader.heads.blocks(question.runs))
    covering = reader.months.covering(question.t0, question.t1)
    months = {*covering, *(month for some in in_memory.values() for month in some)}
    tally = Tally(question)
    damaged = reader.set_aside(question.t0, question.t1)
    for month in sorted(months):
        blocks = {run: some[month] for run, some in in_memory.items() if month in some}
        with reader.opened(month, damaged) as connection:
            damaged += _Month(reader, month, connection, blocks, tally).add()
    return ReadResult(tally.aggregates(), damaged)


class _Run(NamedTuple):
    """A run in a month's file: its extent, whether it has chunks, and the days that the roll-up answers
    for.
    """

    t0: int
    t1: int
    has_chunks: bool
    rolled: set[int]


class _Month:
    """The part of an answer that lies in one month.

    Args:
        connection: to the month's file; None if there is none.
        blocks: what is in memory of the month, by run.
    """

    def __init__(
        self,
        reader: Reader,
        month: Month,
        connection: sqlite3.Connection | None,
        blocks: Mapping[int, list[Block]],
        tally: Tally,
    ) -> None:
        self._reader = reader
        self._month = month
        self._connection = connection
        self._blocks = blocks
        self._tally = tally
        self._question = tally.question

    def add(self) -> list[DamagedData]:
        """Add what this month holds; what of it cannot be read."""
        damaged: list[DamagedData] = []
        runs: dict[int, _Run] = {}
        packed: dict[int, list[Pack]] = {}
        if self._connection is not None:
            try:
                runs = self._runs(self._connection)
                days = self._days(self._connection, runs)
                if len(runs) > _FEW:
                    for run in self._add_alike(self._connection, runs):
                        del runs[run]
                packed = self._packs(self._connection, runs)
            except sqlite3.Error as error:
                damaged.append(self._reader.damage(self._month, error))
                self._connection, runs = None, {}
            else:
                if days:
                    self._tally.add_days(days)
        for run in {**runs, **self._blocks}:
            deadline.check()
            if run in runs and runs[run].has_chunks:
                damaged += self._add_chunks(run, runs[run], packed.get(run, []))
            else:
                damaged += self._add_loose(run, packed.get(run, []))
        return damaged

    def _add_alike(self, connection: sqlite3.Connection, runs: Mapping[int, _Run]) -> list[int]:
        """Add runs that are packs alone, as short runs are, many at a time; which those were."""
        loose = {run for run, row in runs.items() if not row.has_chunks} - self._blocks.keys()
        question = self._question
        shapes = packs.alike(connection, loose, question.metric, question.t0, question.t1)
        seen = Counter(run for one in shapes for run in one.runs)
        again = {run for run, count in seen.items() if count > 1}  # a metric in two packs: put them together
        for one in shapes:
            found = None if again.intersection(one.runs) else one.series()
            if found is None:
                again.update(one.runs)
            else:
                self._tally.add_many(one.runs, *found)
        return list(loose - again)

    def _add_chunks(self, run: int, row: _Run, packed: list[Pack]) -> list[DamagedData]:
        blocks = self._blocks.get(run, [])
        extent = (0, END_OF_TIME_MS) if blocks else (row.t0, row.t1)
        damaged: list[DamagedData] = []
        for stretch in self._stretches(extent, row.rolled):
            damaged += self._reader.visit_one(
                self._connection, self._month, run, blocks, stretch, self._visit, packed
            )
        return damaged

    def _visit(self, month: RunMonth) -> None:
        for _, parts in list(month.buckets([self._question.metric], self._tally.on)):
            self._tally.add(month.run, parts)

    def _add_loose(self, run: int, packed: list[Pack]) -> list[DamagedData]:
        """A run that has no chunks."""
        damaged: list[DamagedData] = []
        blocks = list(self._blocks.get(run, []))
        if len(packed) == 1 and not blocks:
            return self._add_pack(packed[0])
        for pack in packed:
            try:
                blocks.insert(0, pack.block())
            except Corrupt as error:
                damaged.append(DamagedData(run, None, pack.t0, pack.t1, f"a pack: {error}"))
        for group in groups(blocks, {self._question.metric}):
            self._tally.add_samples(run, group.t, group.values[:, 0])
        return damaged

    def _add_pack(self, pack: Pack) -> list[DamagedData]:
        """A run that is a single pack, as short runs are: nothing is to be put together."""
        try:
            series = pack.series(self._question.metric)
        except Corrupt as error:
            return [DamagedData(pack.run, None, pack.t0, pack.t1, f"a pack: {error}")]
        if series is not None:
            self._tally.add_samples(pack.run, *series)
        return []

    def _runs(self, connection: sqlite3.Connection) -> dict[int, _Run]:
        """The runs asked for that are in the file."""
        whole = self._question.whole_days(day_rollup.days_of(self._month))
        found = {}
        for run, t0, t1, chunks_t1, rolled in self._of_runs(
            connection, "SELECT run, t0, t1, chunks_t1, rolled FROM run"
        ):
            days = whole.intersection(day_rollup.rolled_days(self._month, rolled)) if rolled else set[int]()
            if days:
                for block in self._blocks.get(run, []):
                    days.difference_update((block.t // DAY_MS).tolist())
            found[run] = _Run(t0, t1, chunks_t1 is not None, days)
        return found

    def _days(self, connection: sqlite3.Connection, runs: Mapping[int, _Run]) -> list[Day]:
        """The rows of the roll-up for these runs and their days."""
        days = set[int]().union(*(run.rolled for run in runs.values()))
        if not days:
            return []
        rows = connection.execute(
            "SELECT run, day, summary FROM rollup WHERE metric=? AND day BETWEEN ? AND ?",
            (self._question.metric, min(days), max(days)),
        )
        return [row for row in rows if row[0] in runs and row[1] in runs[row[0]].rolled]

    def _packs(self, connection: sqlite3.Connection, runs: Collection[int]) -> dict[int, list[Pack]]:
        """The packs of runs that reach into the range."""
        found: dict[int, list[Pack]] = {}
        if len(runs) <= _FEW:
            return {run: packs.of_run(connection, run) for run in runs}
        for pack in packs.of_all(connection, self._question.t0, self._question.t1):
            if pack.run in runs:
                found.setdefault(pack.run, []).append(pack)
        return found

    def _of_runs(
        self, connection: sqlite3.Connection, select: str
    ) -> Iterator[tuple[int, int, int, int | None, int]]:
        """Rows of a table for the runs asked for; its first column is the run."""
        asked = self._question.runs
        if len(asked) <= _FEW:
            some = json.dumps(list(asked))
            yield from connection.execute(f"{select} WHERE run IN (SELECT value FROM json_each(?))", (some,))
        else:
            yield from (row for row in connection.execute(select) if row[0] in asked)

    def _stretches(self, extent: tuple[int, int], without: set[int]) -> Iterator[tuple[int, int]]:
        """What is left of an extent in the month and the range, without some days."""
        t0 = max(extent[0], self._question.t0, start_ms(self._month))
        end = min(extent[1], self._question.t1, start_ms(self._month + 1) - 1)
        for day in sorted(without):
            if t0 < day * DAY_MS:
                yield t0, day * DAY_MS - 1
            t0 = (day + 1) * DAY_MS
        if t0 <= end:
            yield t0, end
