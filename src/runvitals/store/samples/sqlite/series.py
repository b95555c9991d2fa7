"""Reads the series of one run in one month, from chunks, packs and memory, as samples or on a bucket grid."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Grid, Integers, Partition
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.cold.reading import ColdUnavailable
from runvitals.store.samples.interface import DamagedData
from runvitals.store.samples.sqlite import chunk_summary, chunks, packs
from runvitals.store.samples.sqlite.blocks import Block, Group, groups
from runvitals.store.samples.sqlite.chunks import Chunk, ChunkDecoder

_NO_GROUP = -1


class _JoinedTimes:
    """The times of some chunks and of unchunked samples (of packs and memory).

    They are merged once for all series that share them.
    """

    def __init__(self, parts: Sequence[Integers], unchunked: Integers | None, lo: int, hi: int) -> None:
        t = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0, np.int64)
        rows: NDArray[np.intp] | None = None
        if unchunked is not None and len(unchunked):
            joined = np.concatenate((t, unchunked))
            if len(t) and unchunked[0] <= t[-1]:
                # Unchunked samples are newer than those of chunks at the same time.
                positions = np.flatnonzero(
                    np.append(~np.isin(t, unchunked, assume_unique=True), np.full(len(unchunked), True))
                )
                rows = positions[np.argsort(joined[positions], kind="stable")]
                joined = joined[rows]
            t = joined
        first, last = np.searchsorted(t, (lo, hi + 1))
        self._rows = rows
        self._within = slice(int(first), int(last))
        self.t: Integers = t[self._within]
        self._partition: Partition | None = None

    def values(self, parts: list[Floats]) -> Floats:
        """Return the values at `t`, from those of the chunks and the unchunked ones."""
        values = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0)
        return (values if self._rows is None else values[self._rows])[self._within]

    def buckets(self, values: Floats, on: Grid) -> Buckets:
        if self._partition is None:
            self._partition = Partition(on, self.t)
        return self._partition.reduce(values)


class RunMonth:
    """A run's samples in a month.

    Args:
        connection: to the month file; None if it does not exist.
        blocks: samples of this month in memory; those of packs are added.
        t0, t1: range to read, both included.
        run_packs: the run's packs, if they have been read already.
        selected: skip packs without any of these metrics; None: skip none.

    Attributes:
        damaged: what could not be read so far.
        unavailable: that some of it is in cold storage, and not damaged.
    """

    def __init__(
        self,
        connection: sqlite3.Connection | None,
        run: int,
        blocks: Iterable[Block],
        t0: int,
        t1: int,
        run_packs: Sequence[packs.Pack] | None = None,
        selected: Set[int] | None = None,
    ) -> None:
        self._connection = connection
        self.run = run
        self._t0, self._t1 = t0, t1
        self.damaged: list[DamagedData] = list(self._set_aside())
        self.unavailable: ColdUnavailable | None = None
        self.blocks = [*self._pack_blocks(run_packs, selected), *blocks]
        self._decoder = ChunkDecoder(connection) if connection else None
        self._joined: dict[tuple[object, ...], _JoinedTimes] = {}

    def _set_aside(self) -> Iterator[DamagedData]:
        """Damaged chunks and packs that were moved to the table `damaged`."""
        if self._connection is not None:
            rows = self._connection.execute(
                "SELECT metric, t0, t1, reason FROM damaged WHERE run=? AND t0<=? AND t1>=?",
                (self.run, self._t1, self._t0),
            )
            for metric, t0, t1, reason in rows:
                yield DamagedData(self.run, metric, t0, t1, f"set aside: {reason}")

    def _pack_blocks(
        self, run_packs: Sequence[packs.Pack] | None, selected: Set[int] | None
    ) -> Iterator[Block]:
        if run_packs is None:
            run_packs = packs.of_run(self._connection, self.run) if self._connection else ()
        for pack in run_packs:
            is_selected = selected is None or not selected.isdisjoint(pack.metrics)
            if is_selected and pack.t0 <= self._t1 and pack.t1 >= self._t0:
                try:
                    yield pack.block()
                except CorruptData as error:
                    self.damaged.append(DamagedData(self.run, None, pack.t0, pack.t1, f"a pack: {error}"))

    def metrics(self) -> set[int]:
        """Return the metrics of the run in this month, in the range or not."""
        metrics = {metric for block in self.blocks for metric in block.metrics}
        return metrics.union(chunks.metrics_of(self._connection, self.run)) if self._connection else metrics

    def samples(self, metrics: Collection[int]) -> Iterator[tuple[int, Integers, Floats]]:
        """Yield (metric, times, values) of the metrics that have samples in the range."""
        unchunked = self._find_unchunked(metrics)
        for metric in metrics:
            deadline.check()
            samples = self._samples(metric, self._chunks(metric), *unchunked.get(metric, _NOTHING))
            if samples is not None and len(samples[0].t):
                yield metric, samples[0].t, samples[1]

    def buckets(self, metrics: Collection[int], on: Grid) -> Iterator[tuple[int, list[Buckets]]]:
        """Yield (metric, buckets) of the metrics that have samples in the range.

        The buckets are in parts, in order of time, to be combined.
        """
        unchunked = self._find_unchunked(metrics)
        for metric in metrics:
            deadline.check()
            parts = self._parts(metric, on, *unchunked.get(metric, _NOTHING))
            if parts:
                yield metric, parts

    def _chunks(self, metric: int) -> list[Chunk]:
        if self._connection is None:
            return []
        return chunks.in_range(self._connection, self.run, metric, self._t0, self._t1)

    def _find_unchunked(self, metrics: Collection[int]) -> dict[int, tuple[int, Group | None, int]]:
        """Metric → (number of its group, group of its unchunked samples, column in the group)."""
        by_metric: dict[int, tuple[int, Group | None, int]] = {}
        for number, group in enumerate(groups(self.blocks, frozenset(metrics))):
            first, last = np.searchsorted(group.t, (self._t0, self._t1 + 1))
            within = group.part(slice(int(first), int(last)))
            if len(within.t):
                for column, metric in enumerate(group.metrics):
                    by_metric[metric] = (number, within, column)
        return by_metric

    def _samples(
        self, metric: int, run_chunks: Sequence[Chunk], number: int, unchunked: Group | None, column: int
    ) -> tuple[_JoinedTimes, Floats] | None:
        """Return the samples of some chunks and of a group, joined; None if there are none."""
        times: list[Integers] = []
        values: list[Floats] = []
        times_ids: list[int] = []
        for chunk in run_chunks:
            assert self._decoder is not None  # chunks come from a file
            deadline.check()
            try:
                decoded = self._decoder.times(chunk), self._decoder.values(chunk)
            except CorruptData as error:
                self.damaged.append(DamagedData(self.run, metric, chunk.t0, chunk.t1, f"a chunk: {error}"))
                continue
            except ColdUnavailable as error:
                self.unavailable = error
                self.damaged.append(DamagedData(self.run, metric, chunk.t0, chunk.t1, str(error)))
                continue
            times.append(decoded[0])
            values.append(decoded[1])
            times_ids.append(chunk.times)
        if unchunked is not None:
            values.append(unchunked.values[:, column])
        if not values:
            return None
        key = (number, *(() if unchunked is None else (int(unchunked.t[0]), len(unchunked.t))), *times_ids)
        joined = self._joined.get(key)
        if joined is None:
            unchunked_t = None if unchunked is None else unchunked.t
            joined = self._joined[key] = _JoinedTimes(times, unchunked_t, self._t0, self._t1)
        return joined, joined.values(values)

    def _parts(
        self, metric: int, on: Grid, number: int, unchunked: Group | None, column: int
    ) -> list[Buckets]:
        run_chunks = self._chunks(metric)
        within = self._within_one_bucket(run_chunks, on, unchunked)
        if not within.any():
            return self._reduce(metric, run_chunks, on, number, unchunked, column)
        parts = []
        for is_whole, rows in itertools.groupby(range(len(run_chunks)), lambda row: bool(within[row])):
            adjacent = [run_chunks[row] for row in rows]
            if is_whole:
                starts = np.array([chunk.t0 for chunk in adjacent])
                starts = on.t0_ms + (starts - on.t0_ms) // on.width_ms * on.width_ms
                parts.append(
                    chunk_summary.buckets(starts, chunk_summary.unpack([chunk.summary for chunk in adjacent]))
                )
            else:
                before, unchunked = _split(unchunked, adjacent[-1].t1)
                parts += self._reduce(metric, adjacent, on, number, before, column)
        return parts + self._reduce(metric, (), on, number, unchunked, column)

    def _reduce(
        self,
        metric: int,
        run_chunks: Sequence[Chunk],
        on: Grid,
        number: int,
        unchunked: Group | None,
        column: int,
    ) -> list[Buckets]:
        samples = self._samples(metric, run_chunks, number, unchunked, column)
        return [] if samples is None or not len(samples[0].t) else [samples[0].buckets(samples[1], on)]

    def _within_one_bucket(
        self, run_chunks: Sequence[Chunk], on: Grid, unchunked: Group | None
    ) -> NDArray[np.bool_]:
        """Mark the chunks that need not be decoded: those within one bucket without unchunked samples."""
        if not run_chunks:
            return np.zeros(0, np.bool_)
        bounds = np.array([(chunk.t0, chunk.t1) for chunk in run_chunks])
        first, last = ((bounds - on.t0_ms) // on.width_ms).T
        within: NDArray[np.bool_] = (first == last) & (bounds[:, 0] >= self._t0) & (bounds[:, 1] <= self._t1)
        if unchunked is not None and within.any():
            within &= ~np.isin(first, (unchunked.t - on.t0_ms) // on.width_ms)
        return within


_NOTHING = (_NO_GROUP, None, 0)


def _split(unchunked: Group | None, t_ms: int) -> tuple[Group | None, Group | None]:
    """Split a group at a time: up to it, inclusive, and after it."""
    if unchunked is None:
        return None, None
    row = int(np.searchsorted(unchunked.t, t_ms, side="right"))
    parts = (unchunked.part(slice(None, row)), unchunked.part(slice(row, None)))
    return tuple(part if len(part.t) else None for part in parts)  # type: ignore[return-value]
