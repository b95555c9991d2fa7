"""Reads series from month files and memory, and the newest values of runs."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Grid, Integers, combine
from runvitals.store.samples.interface import (
    END_OF_TIME_MS,
    DamagedData,
    LatestSample,
    ReadResult,
    SeriesBuckets,
    SeriesSamples,
    StoreError,
)
from runvitals.store.samples.sqlite import chunk_summary, chunks, database
from runvitals.store.samples.sqlite.blocks import Block, Group, groups
from runvitals.store.samples.sqlite.head import Heads
from runvitals.store.samples.sqlite.month_files import (
    MISSING,
    SET_ASIDE,
    Month,
    MonthFiles,
    months_of,
    start_ms,
)
from runvitals.store.samples.sqlite.packs import Pack
from runvitals.store.samples.sqlite.series import RunMonth

_MAX_LATEST_RUNS = 20_000
_MAX_METRIC_SETS = 4
"""Per run, the sets of metrics whose newest values are cached."""

HeadMonths = dict[int, dict[Month, list[Block]]]
"""Run → month → blocks in memory."""


class Reader:
    """Reads a store. Thread-safe.

    Memory is always read before the files: samples move from memory to files, so a sample may be read twice
        (and
    is merged), but is never missed.
    """

    def __init__(self, months: MonthFiles, heads: Heads) -> None:
        self.months = months
        self.heads = heads
        self._latest: dict[int, dict[frozenset[int] | None, LatestSample | None]] = {}
        self._latest_lock = threading.Lock()

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0: int, t1: int
    ) -> ReadResult[SeriesSamples]:
        """Read the samples of series as they were written."""
        parts: dict[tuple[int, int], list[tuple[Integers, Floats]]] = {}

        def visit(month: RunMonth) -> None:
            for metric, t, values in list(month.samples(_metrics(metrics, month))):
                parts.setdefault((month.run, metric), []).append((t, values))

        damaged = self._visit(runs, t0, t1, visit)
        series = [
            SeriesSamples(run, metric, *_concatenate(parts[run, metric]))
            for run, metric in _in_order(runs, parts)
        ]
        return ReadResult(series, damaged)

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        """Read the series on a bucket grid."""
        parts: dict[tuple[int, int], list[Buckets]] = {}

        def visit(month: RunMonth) -> None:
            for metric, in_month in list(month.buckets(_metrics(metrics, month), on)):
                parts.setdefault((month.run, metric), []).extend(in_month)

        damaged = self._visit(runs, on.t0_ms, on.t0_ms + on.count * on.width_ms - 1, visit)
        series = [
            SeriesBuckets(run, metric, _combine(parts[run, metric])) for run, metric in _in_order(runs, parts)
        ]
        return ReadResult(series, damaged)

    def _visit(
        self, runs: Sequence[int], t0: int, t1: int, visit: Callable[[RunMonth], None]
    ) -> list[DamagedData]:
        """Call `visit` for each run in each month of a range, in order of time.

        Returns what could not be read.

        If reading a file fails, `visit` is called again for the same run and month, with the samples in
        memory only.
        """
        in_memory = by_month(self.heads.blocks(runs))
        months = {*self.months.covering(t0, t1), *itertools.chain.from_iterable(in_memory.values())}
        damaged = self.unreadable_months(t0, t1)
        for month in sorted(months):
            with self.connection(month, damaged) as connection:
                for run in dict.fromkeys(runs):
                    deadline.check()
                    blocks = in_memory.get(run, {}).get(month, [])
                    damaged += self.visit_run(connection, month, run, blocks, (t0, t1), visit)
        return damaged

    def visit_run(
        self,
        connection: sqlite3.Connection | None,
        month: Month,
        run: int,
        blocks: list[Block],
        extent: tuple[int, int],
        visit: Callable[[RunMonth], None],
        run_packs: Sequence[Pack] | None = None,
    ) -> list[DamagedData]:
        """Like `_visit`, for one run and month.

        Args:
            run_packs: its packs, if they have been read already.
        """
        if connection is not None:
            try:
                series = RunMonth(connection, run, blocks, *extent, run_packs)
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
        """Return a report that a month file could not be read, as a whole or for a run."""
        reason = f"{self.months.path(month)}: {error}"
        return DamagedData(run, None, start_ms(month), start_ms(month + 1) - 1, reason)

    def unreadable_months(self, t0: int, t1: int) -> list[DamagedData]:
        """Return the month files in a range that were set aside or deleted."""
        unreadable = [(month, f"{path} is {SET_ASIDE}") for month, path in self.months.set_aside_files()]
        unreadable += [(month, f"{path} {MISSING}") for month, path in self.months.missing()]
        return [
            DamagedData(None, None, start_ms(month), start_ms(month + 1) - 1, reason)
            for month, reason in unreadable
            if start_ms(month) <= t1 and t0 < start_ms(month + 1)
        ]

    @contextmanager
    def connection(self, month: Month, damaged: list[DamagedData]) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection to a month file.

        None if it does not exist or could not be opened, which is added to `damaged`.
        """
        with ExitStack() as stack:
            connection = None
            if month in self.months.existing() and os.path.exists(self.months.path(month)):
                try:
                    connection = stack.enter_context(self.months.reader(month))
                except StoreError as error:
                    if month in self.months.existing():  # otherwise it was deleted meanwhile
                        damaged.append(self.damage(month, error))
            yield connection

    def active_runs(self, since_ms: int) -> list[int]:
        """Return the ids, ascending, of the runs with a sample at or after this time."""
        in_memory = self.heads.blocks(self.heads.runs())
        active = {
            run
            for run, blocks in in_memory.items()
            if any(int(block.t.max()) >= since_ms for block in blocks)
        }
        for month in self.months.covering(since_ms, END_OF_TIME_MS):
            with (
                suppress(StoreError),  # reported by `stats`
                self.months.reader(month) as connection,
                database.store_errors(self.months.path(month)),
            ):
                rows = connection.execute("SELECT run FROM run WHERE t1>=?", (since_ms,))
                active.update(run for (run,) in rows)
        return sorted(active)

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        """Return the newest values of runs, of these metrics or all."""
        selected = None if metrics is None else frozenset(metrics)
        in_memory = self.heads.blocks(runs, selected)
        on_disk = self._latest_on_disk(runs, selected)
        samples = (self._latest_of(run, on_disk[run], in_memory.get(run, []), selected) for run in runs)
        return [latest for latest in samples if latest is not None]

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        """Return the time of the last sample of each run that has any, ms UTC."""
        times = self.heads.last_times(runs)
        for month in reversed(self.months.existing()):
            unknown = [run for run in runs if run not in times]
            if not unknown:
                break
            with (
                suppress(StoreError),  # reported by `stats`
                self.months.reader(month) as connection,
                database.store_errors(self.months.path(month)),
            ):
                for run in unknown:
                    row = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
                    if row is not None:
                        times[run] = row[0]
        return times

    def forget_latest(self, runs: Iterable[int] | None) -> None:
        """Drop the cached newest values of these runs, or of all: their files have changed."""
        with self._latest_lock:
            for run in list(self._latest) if runs is None else runs:
                self._latest.pop(run, None)

    def _latest_of(
        self, run: int, on_disk: LatestSample | None, blocks: Sequence[Block], selected: frozenset[int] | None
    ) -> LatestSample | None:
        newest = [_newest(group) for group in groups(_newest_block(blocks) or blocks, selected)]
        if on_disk is not None:
            newest.insert(0, self._without_overwritten(on_disk, blocks))
        return _newest_of_all(run, newest)

    def _latest_on_disk(
        self, runs: Sequence[int], selected: frozenset[int] | None
    ) -> dict[int, LatestSample | None]:
        with self._latest_lock:
            cached = {
                run: self._latest[run][selected] for run in runs if selected in self._latest.get(run, {})
            }
            missing = [run for run in runs if run not in cached]
            if not missing:
                return cached
            if len(self._latest) + len(missing) > max(_MAX_LATEST_RUNS, len(runs)):
                self._latest.clear()
            loaded, is_complete = self._load_latest(missing, selected)
            for run in missing if is_complete else ():
                by_metrics = self._latest.setdefault(run, {})
                while len(by_metrics) >= _MAX_METRIC_SETS:
                    by_metrics.pop(next(iter(by_metrics)))
                by_metrics[selected] = loaded[run]
            return {**cached, **loaded}

    def _load_latest(
        self, runs: Sequence[int], selected: frozenset[int] | None
    ) -> tuple[dict[int, LatestSample | None], bool]:
        """Read the newest values in the files, and whether all files could be read.

        Older files are read only for metrics that newer ones do not contain.
        """
        is_complete = True
        newest: dict[int, list[_Newest]] = {run: [] for run in runs}
        covered: dict[int, set[int]] = {run: set() for run in runs}
        for month in reversed(self.months.existing()):
            try:
                with self.months.reader(month) as connection, database.store_errors(self.months.path(month)):
                    for run in runs:
                        newest[run] += _newest_in_file(connection, run, covered[run], selected)
            except StoreError:  # reported by `stats`
                is_complete = False
        return {run: _newest_of_all(run, parts) for run, parts in newest.items()}, is_complete

    def _without_overwritten(self, latest: LatestSample, blocks: Sequence[Block]) -> _Newest:
        """Return the newest values in the files.

        Where a write in memory may have replaced one by a gap, it is the value before it.
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
                present = np.flatnonzero(~np.isnan(series.values))
                if len(present):
                    rows.append((metric, int(series.t[present[-1]]), series.values[present[-1]]))
        return _columns(rows)


_Newest = tuple[Integers, Integers, Floats]
"""Metrics, times, values."""


def _columns(rows: Sequence[tuple[int, int, float]]) -> _Newest:
    metrics, t, values = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(metrics, np.int64), np.array(t, np.int64), np.array(values, np.float64)


def _newest_block(blocks: Sequence[Block]) -> list[Block]:
    """Return the block with the newest values of all metrics: nothing if there may be several."""
    filled = [block for block in blocks if len(block.t)]
    if len(filled) < 2 or any(block.metrics != filled[0].metrics for block in filled):
        return filled
    ends = [int(block.t.max()) for block in filled]
    last = filled[ends.index(max(ends))]
    is_alone = ends.count(max(ends)) == 1 and int(last.t[-1]) == max(ends)
    return [last] if is_alone and not np.isnan(last.values[-1]).any() else []


def _newest(group: Group) -> _Newest:
    """Return the newest values of a group."""
    metrics = np.array(group.metrics, np.int64)
    last = group.values[-1]
    if not np.isnan(last).any():
        return metrics, np.full(len(metrics), group.t[-1]), last
    present = ~np.isnan(group.values)
    rows = len(group.t) - 1 - present[::-1].argmax(axis=0)
    any_value = present.any(axis=0)
    columns = np.flatnonzero(any_value)
    return metrics[columns], group.t[rows[columns]], group.values[rows[columns], columns]


def _newest_in_file(
    connection: sqlite3.Connection, run: int, covered: set[int], selected: frozenset[int] | None
) -> list[_Newest]:
    """Return the newest values in a month file of metrics that are not in `known`; adds them to it."""
    row = connection.execute("SELECT chunks_t1 FROM run WHERE run=?", (run,)).fetchone()
    if row is None:
        return []
    rows = []
    if row[0] is not None:
        metrics = chunks.metrics_of(connection, run) if selected is None else sorted(selected)
        for metric in metrics:
            chunk = None if metric in covered else chunks.newest_with_value(connection, run, metric)
            if chunk is not None:
                summary = chunk_summary.unpack([chunk.summary])[0]
                rows.append((metric, chunk.t1 - int(summary["age"]), summary["last"]))
    newest = [_columns(rows)]
    blocks = RunMonth(connection, run, (), 0, END_OF_TIME_MS, selected=selected).blocks
    unknown = {metric for block in blocks for metric in block.metrics} - covered
    newest += [
        _newest(group) for group in groups(blocks, unknown if selected is None else unknown & selected)
    ]
    covered.update(metric for metrics, _, _ in newest for metric in metrics.tolist())
    return newest


def _newest_of_all(run: int, newest: Sequence[_Newest]) -> LatestSample | None:
    """Return the newest value of each metric; of equally new ones, the last."""
    if len(newest) == 1 and len(newest[0][0]):
        metrics, t, values = newest[0]
        order = np.argsort(metrics)
        return LatestSample(run, metrics[order], t[order], values[order])
    # In files and in memory, almost always.
    if len(newest) == 2 and len(newest[0][0]) == len(newest[1][0]) > 0:
        order = np.argsort(newest[1][0])
        (old_metrics, old_t, _), (metrics, t, values) = newest
        if np.array_equal(metrics[order], old_metrics) and bool((t[order] > old_t).all()):
            return LatestSample(run, metrics[order], t[order], values[order])
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
    """Split blocks in memory by month."""
    months: HeadMonths = {}
    for run, blocks_of_run in blocks.items():
        for block in blocks_of_run:
            for month, rows in months_of(block.t):
                part = block
                if len(rows) < len(block.t):
                    part = Block(block.metrics, block.t[rows], block.values[rows], block.order[rows])
                months.setdefault(run, {}).setdefault(month, []).append(part)
    return months


def _metrics(metrics: Sequence[int] | None, month: RunMonth) -> Sequence[int]:
    return sorted(month.metrics()) if metrics is None else list(dict.fromkeys(metrics))


def _in_order(runs: Sequence[int], series: Mapping[tuple[int, int], object]) -> list[tuple[int, int]]:
    """Series by run, in the order given, then by metric."""
    position = {run: index for index, run in enumerate(dict.fromkeys(runs))}
    return sorted(series, key=lambda key: (position[key[0]], key[1]))


def _combine(parts: list[Buckets]) -> Buckets:
    return parts[0] if len(parts) == 1 else combine(parts)


def _concatenate(parts: list[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([t for t, _ in parts]), np.concatenate([values for _, values in parts])
