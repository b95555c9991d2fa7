"""One metric over many runs: whole days from the day roll-up, the rest from chunks, packs and memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.buckets import Buckets, Floats, Grid, Integers, combine
from runvitals.store.contract import Aggregate, Answer, Damage
from runvitals.store.sqlite_chunks import packs, rollup, summary
from runvitals.store.sqlite_chunks.blocks import Block
from runvitals.store.sqlite_chunks.months import Month, start_ms
from runvitals.store.sqlite_chunks.packs import Pack
from runvitals.store.sqlite_chunks.read import Reader, by_month
from runvitals.store.sqlite_chunks.rollup import DAY_MS
from runvitals.store.sqlite_chunks.series import RunMonth

_FEW = 200
"""For more runs than this a table is read from end to end rather than run by run."""

_Day = tuple[int, int, bytes]
"""Run, day, summary."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, as `SampleStore.aggregate` says."""

    metric: int
    runs: frozenset[int]
    t0: int
    t1: int
    bucket_ms: int | None
    group_by: Mapping[int, int] | None

    def grid(self) -> Grid:
        if self.bucket_ms is None:
            return Grid(self.t0, max(self.t1 - self.t0 + 1, 1), 1)
        first = self.t0 // self.bucket_ms
        return Grid(first * self.bucket_ms, self.bucket_ms, self.t1 // self.bucket_ms - first + 1)

    def whole_days(self, month: Month) -> set[int]:
        """The days of a month that lie in the range, and in one bucket."""
        days = range(-(-self.t0 // DAY_MS), (self.t1 + 1) // DAY_MS)
        some = set(
            range(max(days.start, rollup.days_of(month).start), min(days.stop, rollup.days_of(month).stop))
        )
        if self.bucket_ms is None:
            return some
        width = self.bucket_ms
        return {day for day in some if day * DAY_MS // width == ((day + 1) * DAY_MS - 1) // width}


class _Found:
    """Buckets of many runs, in columns."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._groups: list[Integers] = []
        self._parts: list[Buckets] = []

    def add(self, run: int, parts: Iterable[Buckets]) -> None:
        group = self._group(run)
        for part in parts:
            self._groups.append(np.full(len(part.t), group))
            self._parts.append(part)

    def add_days(self, rows: Sequence[_Day], on: Grid) -> None:
        """Rows of the roll-up."""
        runs, days, packed = zip(*rows, strict=True)
        starts = on.t0_ms + (np.array(days) * DAY_MS - on.t0_ms) // on.width_ms * on.width_ms
        summaries = summary.unpack(packed)
        columns = (summaries[name] for name in ("min", "max", "mean", "last"))
        self._groups.append(np.array([self._group(run) for run in runs], np.int64))
        self._parts.append(Buckets(starts, summaries["n"].astype(np.int64), *columns))

    def _group(self, run: int) -> int:
        return 0 if self._question.group_by is None else self._question.group_by[run]

    def aggregates(self) -> list[Aggregate]:
        if not self._parts:
            return []
        groups = np.concatenate(self._groups)
        t, n, low, high, mean = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in ("t", "n", "min", "max", "mean")
        )
        rows = np.lexsort((t, groups))
        rows = rows[n[rows] > 0]
        groups, edges = groups[rows], np.flatnonzero(np.diff(groups[rows])) + 1
        return [
            _aggregate(int(groups[some[0]]), *(column[rows[some]] for column in (t, n, low, high, mean)))
            for some in np.split(np.arange(len(rows)), edges)
            if len(some)
        ]


def _aggregate(group: int, t: Integers, n: Integers, low: Floats, high: Floats, mean: Floats) -> Aggregate:
    buckets = combine([Buckets(t, n, low, high, mean, mean)])
    return Aggregate(group, buckets.t, buckets.n, buckets.min, buckets.max, buckets.mean)


def aggregate(reader: Reader, question: Question) -> Answer[Aggregate]:
    """Answer a question."""
    in_memory = by_month(reader.heads.blocks(question.runs))
    covering = reader.months.covering(question.t0, question.t1)
    months = {*covering, *(month for some in in_memory.values() for month in some)}
    found = _Found(question)
    damaged: list[Damage] = []
    for month in sorted(months):
        blocks = {run: some[month] for run, some in in_memory.items() if month in some}
        with reader.opened(month, damaged) as connection:
            _Month(reader, question, month, connection, blocks).answer(found, damaged)
    return Answer(found.aggregates(), damaged)


class _Month:
    """The part of an answer that lies in one month.

    Args:
        connection: of the month's file; None if there is none.
        blocks: what is in memory of the month, by run.
    """

    def __init__(
        self,
        reader: Reader,
        question: Question,
        month: Month,
        connection: sqlite3.Connection | None,
        blocks: Mapping[int, list[Block]],
    ) -> None:
        self._reader = reader
        self._question = question
        self._month = month
        self._connection = connection
        self._blocks = blocks
        self._on = question.grid()

    def answer(self, found: _Found, damaged: list[Damage]) -> None:
        """Add what this month holds."""
        asked = {key: set[int]() for key in self._blocks}
        packed: dict[int, list[Pack]] = {}
        if self._connection is not None:
            try:
                rolled = self._rolled_days(self._connection)
                days = self._days(self._connection, rolled)
                packed = self._packs(self._connection, rolled)
            except sqlite3.Error as error:
                damaged.append(self._reader.damage(self._month, error))
                self._connection = None
            else:
                asked |= rolled
                if days:
                    found.add_days(days, self._on)
        for run, without in asked.items():
            for extent in self._stretches(without):
                damaged += self._reader.visit_one(
                    self._connection,
                    self._month,
                    run,
                    self._blocks.get(run, []),
                    extent,
                    lambda month: self._add(month, found),
                    packed.get(run, []) if packed else None,
                )

    def _add(self, month: RunMonth, found: _Found) -> None:
        for _, parts in list(month.buckets([self._question.metric], self._on)):
            found.add(month.run, parts)

    def _rolled_days(self, connection: sqlite3.Connection) -> dict[int, set[int]]:
        """The runs asked for that are in the file, each with the days that the roll-up may answer."""
        whole = self._question.whole_days(self._month)
        found = {}
        for run, rolled in self._of_runs(connection, "SELECT run, rolled FROM run"):
            found[run] = whole.intersection(rollup.rolled_days(self._month, rolled)) if rolled else set()
            for block in self._blocks.get(run, []) if found[run] else ():
                found[run].difference_update((block.t // DAY_MS).tolist())
        return found

    def _days(self, connection: sqlite3.Connection, rolled: Mapping[int, set[int]]) -> list[_Day]:
        """The rows of the roll-up for these runs and days."""
        days = set[int]().union(*rolled.values())
        if not days:
            return []
        rows = connection.execute(
            "SELECT run, day, summary FROM rollup WHERE metric=? AND day BETWEEN ? AND ?",
            (self._question.metric, min(days), max(days)),
        )
        return [row for row in rows if row[1] in rolled.get(row[0], ())]

    def _packs(self, connection: sqlite3.Connection, runs: Collection[int]) -> dict[int, list[Pack]]:
        """All packs in the range by run, where there are many runs; empty where they are few."""
        found: dict[int, list[Pack]] = {}
        if len(runs) > _FEW:
            for pack in packs.of_all(connection, self._question.t0, self._question.t1):
                found.setdefault(pack.run, []).append(pack)
        return found

    def _of_runs(self, connection: sqlite3.Connection, select: str) -> Iterator[tuple[int, int]]:
        """Rows of a table for the runs asked for; its first column is the run."""
        asked = self._question.runs
        if len(asked) <= _FEW:
            yield from connection.execute(
                f"{select} WHERE run IN (SELECT value FROM json_each(?))", (json.dumps(list(asked)),)
            )
        else:
            yield from (row for row in connection.execute(select) if row[0] in asked)

    def _stretches(self, without: set[int]) -> Iterator[tuple[int, int]]:
        """What is left of the month and the range without some days."""
        t0 = max(self._question.t0, start_ms(self._month))
        end = min(self._question.t1, start_ms(self._month + 1) - 1)
        for day in sorted(without):
            if t0 < day * DAY_MS:
                yield t0, day * DAY_MS - 1
            t0 = (day + 1) * DAY_MS
        if t0 <= end:
            yield t0, end
