"""Sealing: a run's newest samples go into chunks, or into its pack while they are too few.

Chunks of a series never overlap. What is older than a chunk's end is written into that chunk, which is rare
and dear; what lies between two chunks becomes one of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from runvitals.buckets import Floats, Integers
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.sqlite_chunks import chunks, day_rollup, month_files, packs, quarantine
from runvitals.store.samples.sqlite_chunks.blocks import Block, Group, groups, overwritten
from runvitals.store.samples.sqlite_chunks.chunks import Chunk, Decoder, Writer
from runvitals.store.samples.sqlite_chunks.settings import Settings


def seal(
    connection: sqlite3.Connection, run: int, blocks: Sequence[Block], settings: Settings, now_ms: int
) -> None:
    """Bring a run's samples of one month into its file, inside a transaction.

    Args:
        blocks: samples of this month.
        now_ms: noted as the time of sealing.
    """
    _Seal(connection, run, settings, now_ms).seal(blocks)


class _Seal:
    def __init__(self, connection: sqlite3.Connection, run: int, settings: Settings, now_ms: int) -> None:
        self._connection = connection
        self._run = run
        self._settings = settings
        self._now_ms = now_ms
        self._writer = Writer(connection)
        self._decoder = Decoder(connection)
        self._samples = 0  # more than before
        row = connection.execute("SELECT chunks_t1 FROM run WHERE run=?", (run,)).fetchone()
        self._old_end: int | None = row[0] if row else None
        self._end = self._old_end

    def seal(self, blocks: Sequence[Block]) -> None:
        t0 = min(int(block.t.min()) for block in blocks)
        t1 = max(int(block.t.max()) for block in blocks)
        packed = self._unpacked()
        short: list[Group] = []
        for group in groups((*packed, *blocks)):
            for loose, gaps in self._outside_of_chunks(group):
                if len(loose.t) < self._settings.pack_ticks:
                    short.append(loose)
                    self._samples += loose.values.size
                else:
                    self._add_chunks(loose, gaps)
        packs.add(self._connection, self._run, short)
        self._writer.write()
        self._note(t0, t1)
        day_rollup.forget(self._connection, month_files.month_of(t0), self._run, t0, t1)

    def _unpacked(self) -> list[Block]:
        """The blocks of the run's packs, which are taken away."""
        there = packs.of_run(self._connection, self._run)
        self._samples -= sum(pack.samples for pack in there)
        found = []
        for pack in there:
            try:
                found.append(pack.block())
            except Corrupt as error:
                quarantine.set_pack_aside(self._connection, pack, str(error))
        packs.remove(self._connection, there)
        return found

    def _outside_of_chunks(self, group: Group) -> Iterator[tuple[Group, Integers]]:
        """Write those samples into their chunks that lie within one; the others, and between which chunks
        each of them lies.
        """
        nothing_between = np.zeros(len(group.t), np.int64)
        if self._old_end is None or group.t[0] > self._old_end:
            yield group, nothing_between
            return
        alike: dict[bytes, tuple[Integers, list[int]]] = {}
        for column, metric in enumerate(group.metrics):
            gaps = self._write_into_chunks(metric, group, column)
            alike.setdefault(gaps.tobytes(), (gaps, []))[1].append(column)
        for gaps, columns in alike.values():
            rows = np.flatnonzero(gaps >= 0)
            if len(rows):
                metrics = tuple(group.metrics[column] for column in columns)
                yield Group(metrics, group.t[rows], group.values[rows][:, columns]), gaps[rows]

    def _write_into_chunks(self, metric: int, group: Group, column: int) -> Integers:
        """For each sample how many chunks of the series end before it, or -1: it was written into one."""
        t, values = group.t, group.values[:, column]
        there = chunks.in_range(self._connection, self._run, metric, int(t[0]), int(t[-1]))
        if not there:
            return np.zeros(len(t), np.int64)
        starts = np.array([chunk.t0 for chunk in there])
        ends = np.array([chunk.t1 for chunk in there])
        gaps = np.searchsorted(ends, t, side="left")
        inside = (gaps < len(there)) & (starts[np.minimum(gaps, len(there) - 1)] <= t)
        for index in np.unique(gaps[inside]):
            rows = inside & (gaps == index)
            if not self._rewrite(there[index], t[rows], values[rows]):
                # The chunk has been set aside, and left a gap where it was.
                inside[rows] = False
        return np.where(inside, -1, gaps)

    def _rewrite(self, chunk: Chunk, t: Integers, values: Floats) -> bool:
        """Write samples into a chunk; False if it is damaged."""
        try:
            old_t, old_values = self._decoder.times(chunk), self._decoder.values(chunk)
        except Corrupt as error:
            quarantine.set_chunk_aside(self._connection, chunk, str(error))
            self._writer.remove([chunk])
            self._samples -= chunk.ticks
            return False
        new_t, new_values = overwritten(old_t, old_values, t, values)
        self._writer.remove([chunk])
        self._samples -= chunk.ticks
        self._add_chunks(
            Group((chunk.metric,), new_t, new_values.reshape(-1, 1)), np.zeros(len(new_t), np.int64)
        )
        return True

    def _add_chunks(self, group: Group, gaps: Integers) -> None:
        """Chunks of about `chunk_ticks`, none of which reaches over an existing one."""
        edges = np.flatnonzero(np.diff(gaps)) + 1
        for rows in np.split(np.arange(len(group.t)), edges):
            pieces = max(1, round(len(rows) / self._settings.chunk_ticks))
            for piece in np.array_split(rows, pieces):
                self._writer.add(self._run, group.part(slice(int(piece[0]), int(piece[-1]) + 1)))
        self._samples += group.values.size
        last = int(group.t[-1])
        self._end = last if self._end is None else max(self._end, last)

    def _note(self, t0: int, t1: int) -> None:
        self._connection.execute(
            """INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, 0, 1, ?6) ON CONFLICT (run) DO UPDATE SET
            t0=min(t0, ?2), t1=max(t1, ?3), chunks_t1=?4, samples=samples+?5, seals=seals+1, sealed_ms=?6""",
            (self._run, t0, t1, self._end, self._samples, self._now_ms),
        )
