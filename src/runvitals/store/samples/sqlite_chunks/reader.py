"""Reading: series over the files of months and what is still in memory, and the newest values."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import numpy as np

from runvitals import deadline
from runvitals.buckets import Buckets, Floats, Grid, Integers, combine
from runvitals.store.samples.contract import (
    END_OF_TIME_MS,
    DamagedData,
    LatestSample,
    ReadResult,
    SeriesBuckets,
    SeriesSamples,
    StoreError,
)
from runvitals.store.samples.sqlite_chunks import chunk_summary, chunks, database
from runvitals.store.samples.sqlite_chunks.blocks import Block, Group, groups
from runvitals.store.samples.sqlite_chunks.head import Heads
from runvitals.store.samples.sqlite_chunks.month_files import (
    ASIDE,
    MISSING,
    Month,
    Months,
    months_of,
    start_ms,
)
from runvitals.store.samples.sqlite_chunks.packs import Pack
from runvitals.store.samples.sqlite_chunks.series import RunMonth

_MOST_LATEST = 20_000
_MOST_CHOICES = 4
"""Choices of metrics that the newest values of a run are kept of."""

HeadMonths = dict[int, dict[Month, list[Block]]]
"""Run → month → what is in memory of both."""


class Reader:
    """Reads a store, from any thread.

    What is in memory is always looked at before the files: a sample moves from there into a file, so that it
        is seen twice at worst, and put together into one.
    """

    def __init__(self, months: Months, heads: Heads) -> None:
        self.months = months
        self.heads = heads
        self._latest: dict[int, dict[frozenset[int] | None, LatestSample | None]] = {}
        self._latest_lock = threading.Lock()

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0: int, t1: int
    ) -> ReadResult[SeriesSamples]:
        found: dict[tuple[int, int], list[tuple[Integers, Floats]]] = {}

        def visit(month: RunMonth) -> None:
            for metric, t, values in list(month.samples(_chosen(metrics, month))):
                found.setdefault((month.run, metric), []).append((t, values))

        damaged = self._visit(runs, t0, t1, visit)
        series = [
            SeriesSamples(run, metric, *_joined(found[run, metric])) for run, metric in _in_order(runs, found)
        ]
        return ReadResult(series, damaged)

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        found: dict[tuple[int, int], list[Buckets]] = {}

        def visit(month: RunMonth) -> None:
            for metric, parts in list(month.buckets(_chosen(metrics, month), on)):
                found.setdefault((month.run, metric), []).extend(parts)

        damaged = self._visit(runs, on.t0_ms, on.t0_ms + on.count * on.width_ms - 1, visit)
        series = [
            SeriesBuckets(run, metric, _combined(found[run, metric]))
            for run, metric in _in_order(runs, found)
        ]
        return ReadResult(series, damaged)

    def _visit(
        self, runs: Sequence[int], t0: int, t1: int, visit: Callable[[RunMonth], None]
    ) -> list[DamagedData]:
        """Show `visit` each of the runs in each month of a range, in the order of time; what could not be
        read.

        Where a file fails in the middle, `visit` is shown the same run and month again, with what is in
        memory alone.
        """
        in_memory = by_month(self.heads.blocks(runs))
        months = {*self.months.covering(t0, t1), *(month for some in in_memory.values() for month in some)}
        damaged = self.set_aside(t0, t1)
        for month in sorted(months):
            with self.opened(month, damaged) as connection:
                for run in dict.fromkeys(runs):
                    deadline.check()
                    blocks = in_memory.get(run, {}).get(month, [])
                    damaged += self.visit_one(connection, month, run, blocks, (t0, t1), visit)
        return damaged

    def visit_one(
        self,
        connection: sqlite3.Connection | None,
        month: Month,
        run: int,
        blocks: list[Block],
        extent: tuple[int, int],
        visit: Callable[[RunMonth], None],
        unpacked: Sequence[Pack] | None = None,
    ) -> list[DamagedData]:
        """`_visit` for one run and month; `unpacked`: its packs, if they were read before."""
        if connection is not None:
            try:
                series = RunMonth(connection, run, blocks, *extent, unpacked)
                visit(series)
                return series.damaged
            except sqlite3.Error as error:
                damaged = [self.damage(month, error, run)]
        else:
            damaged = []
        if blocks:
            visit(RunMonth(None, run, blocks, *extent))
        return damaged

    def damage(self, month: Month, error: Exception, run: int | None = None) -> DamagedData:
        """That a month's file cannot be read, wholly or for a run."""
        reason = f"{self.months.path(month)}: {error}"
        return DamagedData(run, None, start_ms(month), start_ms(month + 1) - 1, reason)

    def set_aside(self, t0: int, t1: int) -> list[DamagedData]:
        """The files of months in a range that were damaged and set aside, or deleted."""
        unreadable = [(month, f"{path} is {ASIDE}") for month, path in self.months.aside()]
        unreadable += [(month, f"{path} {MISSING}") for month, path in self.months.missing()]
        return [
            DamagedData(None, None, start_ms(month), start_ms(month + 1) - 1, reason)
            for month, reason in unreadable
            if start_ms(month) <= t1 and t0 < start_ms(month + 1)
        ]

    @contextmanager
    def opened(self, month: Month, damaged: list[DamagedData]) -> Iterator[sqlite3.Connection | None]:
        """A connection to a month's file; None if there is none, or none that can be opened, which is
        noted.
        """
        with ExitStack() as stack:
            connection = None
            if month in self.months.there() and os.path.exists(self.months.path(month)):
                try:
                    connection = stack.enter_context(self.months.reader(month))
                except StoreError as error:
                    if month in self.months.there():  # and not dropped meanwhile
                        damaged.append(self.damage(month, error))
            yield connection

    def active_runs(self, since_ms: int) -> list[int]:
        in_memory = self.heads.blocks(self.heads.runs())
        found = {
            run
            for run, blocks in in_memory.items()
            if any(int(block.t.max()) >= since_ms for block in blocks)
        }
        for month in self.months.covering(since_ms, END_OF_TIME_MS):
            with (
                suppress(StoreError),  # `stats` warns of it
                self.months.reader(month) as connection,
                database.failing(self.months.path(month)),
            ):
                rows = connection.execute("SELECT run FROM run WHERE t1>=?", (since_ms,))
                found.update(run for (run,) in rows)
        return sorted(found)

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        wanted = None if metrics is None else frozenset(metrics)
        in_memory = self.heads.blocks(runs, wanted)
        on_disk = self._latest_on_disk(runs, wanted)
        found = (self._latest_of(run, on_disk[run], in_memory.get(run, []), wanted) for run in runs)
        return [one for one in found if one is not None]

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        found = self.heads.last_times(runs)
        for month in reversed(self.months.there()):
            unknown = [run for run in runs if run not in found]
            if not unknown:
                break
            with (
                suppress(StoreError),  # `stats` warns of it
                self.months.reader(month) as connection,
                database.failing(self.months.path(month)),
            ):
                for run in unknown:
                    row = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
                    if row is not None:
                        found[run] = row[0]
        return found

    def forget_latest(self, runs: Iterable[int] | None) -> None:
        """The files have changed for these runs; None for all."""
        with self._latest_lock:
            for run in list(self._latest) if runs is None else runs:
                self._latest.pop(run, None)

    def _latest_of(
        self, run: int, on_disk: LatestSample | None, blocks: Sequence[Block], wanted: frozenset[int] | None
    ) -> LatestSample | None:
        newest = [_newest(group) for group in groups(blocks, wanted)]
        if on_disk is not None:
            newest.insert(0, self._still_true(on_disk, blocks))
        return _newest_of_all(run, newest)

    def _latest_on_disk(
        self, runs: Sequence[int], wanted: frozenset[int] | None
    ) -> dict[int, LatestSample | None]:
        with self._latest_lock:
            known = {run: self._latest[run][wanted] for run in runs if wanted in self._latest.get(run, {})}
            unknown = [run for run in runs if run not in known]
            if not unknown:
                return known
            if len(self._latest) + len(unknown) > max(_MOST_LATEST, len(runs)):
                self._latest.clear()
            loaded, is_whole = self._load_latest(unknown, wanted)
            for run in unknown if is_whole else ():
                of_run = self._latest.setdefault(run, {})
                while len(of_run) >= _MOST_CHOICES:
                    of_run.pop(next(iter(of_run)))
                of_run[wanted] = loaded[run]
            return {**known, **loaded}

    def _load_latest(
        self, runs: Sequence[int], wanted: frozenset[int] | None
    ) -> tuple[dict[int, LatestSample | None], bool]:
        """The newest values in the files, and whether all files could be read. Older files are asked for what
        newer ones have not.
        """
        is_whole = True
        found: dict[int, list[_Newest]] = {run: [] for run in runs}
        known: dict[int, set[int]] = {run: set() for run in runs}
        for month in reversed(self.months.there()):
            try:
                with self.months.reader(month) as connection, database.failing(self.months.path(month)):
                    for run in runs:
                        found[run] += _newest_in_file(connection, run, known[run], wanted)
            except StoreError:  # `stats` warns of it
                is_whole = False
        return {run: _newest_of_all(run, newest) for run, newest in found.items()}, is_whole

    def _still_true(self, latest: LatestSample, blocks: Sequence[Block]) -> _Newest:
        """The newest values in the files, but those that were overwritten by a gap: there, the ones
        before.
        """
        start = min((int(block.t.min()) for block in blocks), default=None)
        if start is None or int(latest.t.max()) < start:
            return latest.metrics, latest.t, latest.values
        rows = []
        for metric, t, value in zip(latest.metrics.tolist(), latest.t.tolist(), latest.values, strict=True):
            if t < start:
                rows.append((metric, t, value))
                continue
            for series in self.read([latest.run], [metric], 0, t).series:
                there = np.flatnonzero(~np.isnan(series.values))
                if len(there):
                    rows.append((metric, int(series.t[there[-1]]), series.values[there[-1]]))
        return _columns(rows)


_Newest = tuple[Integers, Integers, Floats]
"""Metrics, times, values."""


def _columns(rows: Sequence[tuple[int, int, float]]) -> _Newest:
    metrics, t, values = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(metrics, np.int64), np.array(t, np.int64), np.array(values, np.float64)


def _newest(group: Group) -> _Newest:
    """The newest values of a group."""
    metrics = np.array(group.metrics, np.int64)
    last = group.values[-1]
    if not np.isnan(last).any():
        return metrics, np.full(len(metrics), group.t[-1]), last
    there = ~np.isnan(group.values)
    rows = len(group.t) - 1 - there[::-1].argmax(axis=0)
    some = there.any(axis=0)
    return metrics[some], group.t[rows[some]], group.values[rows[some], np.flatnonzero(some)]


def _newest_in_file(
    connection: sqlite3.Connection, run: int, known: set[int], wanted: frozenset[int] | None
) -> list[_Newest]:
    """The newest values in a month's file, of metrics that are not known yet; they are then."""
    there = connection.execute("SELECT chunks_t1 FROM run WHERE run=?", (run,)).fetchone()
    if there is None:
        return []
    rows = []
    if there[0] is not None:
        metrics = chunks.metrics_of(connection, run) if wanted is None else sorted(wanted)
        for metric in metrics:
            chunk = None if metric in known else chunks.newest_with_value(connection, run, metric)
            if chunk is not None:
                summed_up = chunk_summary.unpack([chunk.summary])[0]
                rows.append((metric, chunk.t1 - int(summed_up["age"]), summed_up["last"]))
    newest = [_columns(rows)]
    blocks = RunMonth(connection, run, (), 0, END_OF_TIME_MS, wanted=wanted).blocks
    unknown = {metric for block in blocks for metric in block.metrics} - known
    newest += [_newest(group) for group in groups(blocks, unknown if wanted is None else unknown & wanted)]
    known.update(metric for metrics, _, _ in newest for metric in metrics.tolist())
    return newest


def _newest_of_all(run: int, newest: Sequence[_Newest]) -> LatestSample | None:
    """Of several newest values of a metric the newest; of equally new ones the last."""
    if len(newest) == 1 and bool((newest[0][0][1:] > newest[0][0][:-1]).all()):
        return LatestSample(run, *newest[0]) if len(newest[0][0]) else None
    metrics, t, values = (
        (np.concatenate(column) for column in zip(*newest, strict=True)) if newest else _columns([])
    )
    if not len(metrics):
        return None
    rows = np.lexsort((np.arange(len(metrics)), t, metrics))
    ordered = metrics[rows]
    rows = rows[np.append(ordered[1:] != ordered[:-1], True)]
    return LatestSample(run, metrics[rows], t[rows], values[rows])


def by_month(blocks: dict[int, list[Block]]) -> HeadMonths:
    """What is in memory, by the months of its times."""
    found: HeadMonths = {}
    for run, some in blocks.items():
        for block in some:
            for month, rows in months_of(block.t):
                part = block
                if len(rows) < len(block.t):
                    part = Block(block.metrics, block.t[rows], block.values[rows], block.order[rows])
                found.setdefault(run, {}).setdefault(month, []).append(part)
    return found


def _chosen(metrics: Sequence[int] | None, month: RunMonth) -> Sequence[int]:
    return sorted(month.metrics()) if metrics is None else list(dict.fromkeys(metrics))


def _in_order(runs: Sequence[int], found: Mapping[tuple[int, int], object]) -> list[tuple[int, int]]:
    """The series found, by run as asked, then by metric."""
    place = {run: index for index, run in enumerate(dict.fromkeys(runs))}
    return sorted(found, key=lambda series: (place[series[0]], series[1]))


def _combined(parts: list[Buckets]) -> Buckets:
    return parts[0] if len(parts) == 1 else combine(parts)


def _joined(parts: list[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([t for t, _ in parts]), np.concatenate([values for _, values in parts])
