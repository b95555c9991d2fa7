"""One run's series in one month: chunks, packs and what is still in memory, as samples or on a bucket
grid.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from runvitals import deadline
from runvitals.buckets import Buckets, Floats, Grid, Integers, Partition
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.contract import DamagedData
from runvitals.store.samples.sqlite_chunks import chunk_summary, chunks, packs
from runvitals.store.samples.sqlite_chunks.blocks import Block, Group, groups
from runvitals.store.samples.sqlite_chunks.chunks import Chunk, Decoder

_NO_LOOSE = -1


class _Joined:
    """The times of some chunks and of loose samples, put together; the same for all series that share
    them.
    """

    def __init__(self, parts: Sequence[Integers], loose: Integers | None, lo: int, hi: int) -> None:
        t = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0, np.int64)
        rows: NDArray[np.intp] | None = None
        if loose is not None and len(loose):
            joined = np.concatenate((t, loose))
            if len(t) and loose[0] <= t[-1]:
                # A loose sample was written later than one of a chunk at the same time.
                kept = np.flatnonzero(
                    np.append(~np.isin(t, loose, assume_unique=True), np.full(len(loose), True))
                )
                rows = kept[np.argsort(joined[kept], kind="stable")]
                joined = joined[rows]
            t = joined
        first, last = np.searchsorted(t, (lo, hi + 1))
        self._rows = rows
        self._within = slice(int(first), int(last))
        self.t: Integers = t[self._within]
        self._partition: Partition | None = None

    def values(self, parts: list[Floats]) -> Floats:
        """The values that belong to `t`, from those of the chunks and the loose ones."""
        values = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0)
        return (values if self._rows is None else values[self._rows])[self._within]

    def buckets(self, values: Floats, on: Grid) -> Buckets:
        if self._partition is None:
            self._partition = Partition(on, self.t)
        return self._partition.reduce(values)


class RunMonth:
    """A run's samples in a month.

    Args:
        connection: of the month's file; None if there is none.
        blocks: what is in memory of this month; those of the packs come to them.
        t0, t1: nothing outside of this range is looked at.
        unpacked: the run's packs, if they were read before.
        wanted: packs without any of these metrics are passed over; None: none are.
    """

    def __init__(
        self,
        connection: sqlite3.Connection | None,
        run: int,
        blocks: Iterable[Block],
        t0: int,
        t1: int,
        unpacked: Sequence[packs.Pack] | None = None,
        wanted: Set[int] | None = None,
    ) -> None:
        self._connection = connection
        self.run = run
        self._t0, self._t1 = t0, t1
        self.damaged: list[DamagedData] = list(self._set_aside())
        self.blocks = [*self._unpacked(unpacked, wanted), *blocks]
        self._decoder = Decoder(connection) if connection else None
        self._joined: dict[tuple[object, ...], _Joined] = {}

    def _set_aside(self) -> Iterator[DamagedData]:
        """What was damaged where something was written, and is no longer in its place."""
        if self._connection is not None:
            rows = self._connection.execute(
                "SELECT metric, t0, t1, reason FROM damaged WHERE run=? AND t0<=? AND t1>=?",
                (self.run, self._t1, self._t0),
            )
            for metric, t0, t1, reason in rows:
                yield DamagedData(self.run, metric, t0, t1, f"set aside: {reason}")

    def _unpacked(self, there: Sequence[packs.Pack] | None, wanted: Set[int] | None) -> Iterator[Block]:
        if there is None:
            there = packs.of_run(self._connection, self.run) if self._connection else ()
        for pack in there:
            is_wanted = wanted is None or not wanted.isdisjoint(pack.metrics)
            if is_wanted and pack.t0 <= self._t1 and pack.t1 >= self._t0:
                try:
                    yield pack.block()
                except Corrupt as error:
                    self.damaged.append(DamagedData(self.run, None, pack.t0, pack.t1, f"a pack: {error}"))

    def metrics(self) -> set[int]:
        """The metrics the run has in this month, in the range or not."""
        found = {metric for block in self.blocks for metric in block.metrics}
        return found.union(chunks.metrics_of(self._connection, self.run)) if self._connection else found

    def samples(self, metrics: Collection[int]) -> Iterator[tuple[int, Integers, Floats]]:
        """(metric, times, values) of those metrics that have samples in the range."""
        loose = self._loose(metrics)
        for metric in metrics:
            deadline.check()
            found = self._samples(metric, self._chunks(metric), *loose.get(metric, _NOTHING))
            if found is not None and len(found[0].t):
                yield metric, found[0].t, found[1]

    def buckets(self, metrics: Collection[int], on: Grid) -> Iterator[tuple[int, list[Buckets]]]:
        """(metric, parts in the order of time, to be combined) of those metrics that have samples in the
        range.
        """
        loose = self._loose(metrics)
        for metric in metrics:
            deadline.check()
            parts = self._parts(metric, on, *loose.get(metric, _NOTHING))
            if parts:
                yield metric, parts

    def _chunks(self, metric: int) -> list[Chunk]:
        if self._connection is None:
            return []
        return chunks.in_range(self._connection, self.run, metric, self._t0, self._t1)

    def _loose(self, metrics: Collection[int]) -> dict[int, tuple[int, Group | None, int]]:
        """Metric → a number for its group, the group of its samples that are in no chunk, the metric's
        column.
        """
        found: dict[int, tuple[int, Group | None, int]] = {}
        for number, group in enumerate(groups(self.blocks, frozenset(metrics))):
            first, last = np.searchsorted(group.t, (self._t0, self._t1 + 1))
            within = group.part(slice(int(first), int(last)))
            if len(within.t):
                for column, metric in enumerate(group.metrics):
                    found[metric] = (number, within, column)
        return found

    def _samples(
        self, metric: int, there: Sequence[Chunk], number: int, loose: Group | None, column: int
    ) -> tuple[_Joined, Floats] | None:
        """The samples of some chunks and of a group; None if there are none."""
        times: list[Integers] = []
        values: list[Floats] = []
        names: list[int] = []
        for chunk in there:
            assert self._decoder is not None  # chunks come from a file
            deadline.check()
            try:
                decoded = self._decoder.times(chunk), self._decoder.values(chunk)
            except Corrupt as error:
                self.damaged.append(DamagedData(self.run, metric, chunk.t0, chunk.t1, f"a chunk: {error}"))
                continue
            times.append(decoded[0])
            values.append(decoded[1])
            names.append(chunk.times)
        if loose is not None:
            values.append(loose.values[:, column])
        if not values:
            return None
        key = (number, *(() if loose is None else (int(loose.t[0]), len(loose.t))), *names)
        joined = self._joined.get(key)
        if joined is None:
            loose_t = None if loose is None else loose.t
            joined = self._joined[key] = _Joined(times, loose_t, self._t0, self._t1)
        return joined, joined.values(values)

    def _parts(self, metric: int, on: Grid, number: int, loose: Group | None, column: int) -> list[Buckets]:
        there = self._chunks(metric)
        whole = self._whole(there, on, loose)
        if not whole.any():
            return self._reduced(metric, there, on, number, loose, column)
        parts = []
        for is_whole, run_of_rows in itertools.groupby(range(len(there)), lambda row: bool(whole[row])):
            some = [there[row] for row in run_of_rows]
            if is_whole:
                starts = np.array([chunk.t0 for chunk in some])
                starts = on.t0_ms + (starts - on.t0_ms) // on.width_ms * on.width_ms
                parts.append(
                    chunk_summary.buckets(starts, chunk_summary.unpack([chunk.summary for chunk in some]))
                )
            else:
                before, loose = _split(loose, some[-1].t1)
                parts += self._reduced(metric, some, on, number, before, column)
        return parts + self._reduced(metric, (), on, number, loose, column)

    def _reduced(
        self,
        metric: int,
        there: Sequence[Chunk],
        on: Grid,
        number: int,
        loose: Group | None,
        column: int,
    ) -> list[Buckets]:
        found = self._samples(metric, there, number, loose, column)
        return [] if found is None or not len(found[0].t) else [found[0].buckets(found[1], on)]

    def _whole(self, there: Sequence[Chunk], on: Grid, loose: Group | None) -> NDArray[np.bool_]:
        """Which chunks need not be decoded: they lie in one bucket, and no loose sample does."""
        if not there:
            return np.zeros(0, np.bool_)
        bounds = np.array([(chunk.t0, chunk.t1) for chunk in there])
        first, last = ((bounds - on.t0_ms) // on.width_ms).T
        whole: NDArray[np.bool_] = (first == last) & (bounds[:, 0] >= self._t0) & (bounds[:, 1] <= self._t1)
        if loose is not None and whole.any():
            whole &= ~np.isin(first, (loose.t - on.t0_ms) // on.width_ms)
        return whole


_NOTHING = (_NO_LOOSE, None, 0)


def _split(loose: Group | None, t_ms: int) -> tuple[Group | None, Group | None]:
    """A group up to a time, included, and after it."""
    if loose is None:
        return None, None
    row = int(np.searchsorted(loose.t, t_ms, side="right"))
    parts = (loose.part(slice(None, row)), loose.part(slice(row, None)))
    return tuple(part if len(part.t) else None for part in parts)  # type: ignore[return-value]
