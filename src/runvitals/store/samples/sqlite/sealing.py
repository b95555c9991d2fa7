"""Sealing: writes a run's newest samples into chunks, or into its pack if they are few.

Chunks of a series never overlap. Samples within the range of an existing chunk are merged into it, which is
rare and expensive; samples between two chunks become a chunk.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.sqlite import chunks, day_rollup, month_files, packs
from runvitals.store.samples.sqlite.blocks import Block, Group, groups, overwrite
from runvitals.store.samples.sqlite.chunks import Chunk, ChunkDecoder, ChunkWriter
from runvitals.store.samples.sqlite.packs import Pack
from runvitals.store.samples.sqlite.settings import StoreSettings

log = logging.getLogger("runvitals.store")


def seal(
    connection: sqlite3.Connection, run: int, blocks: Sequence[Block], settings: StoreSettings, now_ms: int
) -> None:
    """Write a run's samples of one month into its file, as sealed at `now_ms`, inside a transaction."""
    _RunSealing(connection, run, settings, now_ms).seal(blocks)


class _RunSealing:
    def __init__(
        self, connection: sqlite3.Connection, run: int, settings: StoreSettings, now_ms: int
    ) -> None:
        self._connection = connection
        self._run = run
        self._settings = settings
        self._now_ms = now_ms
        self._writer = ChunkWriter(connection)
        self._decoder = ChunkDecoder(connection)
        self._samples = 0  # added minus removed
        row = connection.execute("SELECT chunks_t1 FROM run WHERE run=?", (run,)).fetchone()
        self._old_end: int | None = row[0] if row else None
        self._end = self._old_end

    def seal(self, blocks: Sequence[Block]) -> None:
        t0 = min(int(block.t.min()) for block in blocks)
        t1 = max(int(block.t.max()) for block in blocks)
        packed = self._take_packs()
        short: list[Group] = []
        for group in groups((*packed, *blocks)):
            for part, gaps in self._merge_into_chunks(group):
                if len(part.t) < self._settings.pack_ticks:
                    short.append(part)
                    self._samples += part.values.size
                else:
                    self._add_chunks(part, gaps)
        packs.add(self._connection, self._run, short)
        self._writer.write()
        self._update_run(t0, t1)
        day_rollup.forget(self._connection, month_files.month_of(t0), self._run, t0, t1)

    def _take_packs(self) -> list[Block]:
        """Remove the run's packs. Returns their blocks."""
        existing = packs.of_run(self._connection, self._run)
        self._samples -= sum(pack.samples for pack in existing)
        blocks = []
        for pack in existing:
            try:
                blocks.append(pack.block())
            except CorruptData as error:
                _set_pack_aside(self._connection, pack, str(error))
        packs.remove(self._connection, existing)
        return blocks

    def _merge_into_chunks(self, group: Group) -> Iterator[tuple[Group, Integers]]:
        """Merge samples that fall within an existing chunk into it.

        Yields the other samples, with the number of chunks before each: samples with different numbers are
        separated by a chunk.
        """
        no_chunks_between = np.zeros(len(group.t), np.int64)
        if self._old_end is None or group.t[0] > self._old_end:
            yield group, no_chunks_between
            return
        by_gaps: dict[bytes, tuple[Integers, list[int]]] = {}
        for column, metric in enumerate(group.metrics):
            gaps = self._merge_series(metric, group, column)
            by_gaps.setdefault(gaps.tobytes(), (gaps, []))[1].append(column)
        for gaps, columns in by_gaps.values():
            rows = np.flatnonzero(gaps >= 0)
            if len(rows):
                metrics = tuple(group.metrics[column] for column in columns)
                yield Group(metrics, group.t[rows], group.values[rows][:, columns]), gaps[rows]

    def _merge_series(self, metric: int, group: Group, column: int) -> Integers:
        """Merge samples of one series.

        Returns for each sample the number of chunks before it, or -1 if it was merged into a chunk.
        """
        t, values = group.t, group.values[:, column]
        existing = chunks.in_range(self._connection, self._run, metric, int(t[0]), int(t[-1]))
        if not existing:
            return np.zeros(len(t), np.int64)
        starts = np.array([chunk.t0 for chunk in existing])
        ends = np.array([chunk.t1 for chunk in existing])
        gaps = np.searchsorted(ends, t, side="left")
        inside = (gaps < len(existing)) & (starts[np.minimum(gaps, len(existing) - 1)] <= t)
        for index in np.unique(gaps[inside]):
            rows = inside & (gaps == index)
            if not self._rewrite(existing[index], t[rows], values[rows]):
                # The chunk was set aside, which leaves a gap in its place.
                inside[rows] = False
        return np.where(inside, -1, gaps)

    def _rewrite(self, chunk: Chunk, t: Integers, values: Floats) -> bool:
        """Merge samples into a chunk; False if the chunk is damaged."""
        try:
            old_t, old_values = self._decoder.times(chunk), self._decoder.values(chunk)
        except CorruptData as error:
            _set_chunk_aside(self._connection, chunk, str(error))
            self._writer.remove([chunk])
            self._samples -= chunk.ticks
            return False
        new_t, new_values = overwrite(old_t, old_values, t, values)
        self._writer.remove([chunk])
        self._samples -= chunk.ticks
        self._add_chunks(
            Group((chunk.metric,), new_t, new_values.reshape(-1, 1)), np.zeros(len(new_t), np.int64)
        )
        return True

    def _add_chunks(self, group: Group, gaps: Integers) -> None:
        """Add chunks of about `chunk_ticks`, none of which overlaps an existing one."""
        edges = np.flatnonzero(np.diff(gaps)) + 1
        for rows in np.split(np.arange(len(group.t)), edges):
            pieces = max(1, round(len(rows) / self._settings.chunk_ticks))
            for piece in np.array_split(rows, pieces):
                self._writer.add(self._run, group.part(slice(int(piece[0]), int(piece[-1]) + 1)))
        self._samples += group.values.size
        last = int(group.t[-1])
        self._end = last if self._end is None else max(self._end, last)

    def _update_run(self, t0: int, t1: int) -> None:
        self._connection.execute(
            """INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, 0, 1, ?6) ON CONFLICT (run) DO UPDATE SET
            t0=min(t0, ?2), t1=max(t1, ?3), chunks_t1=?4, samples=samples+?5, seals=seals+1, sealed_ms=?6""",
            (self._run, t0, t1, self._end, self._samples, self._now_ms),
        )


def _set_chunk_aside(connection: sqlite3.Connection, chunk: Chunk, reason: str) -> None:
    """Copy a chunk to the table `damaged`; the caller removes it."""
    connection.execute(
        """INSERT INTO damaged (run, metric, t0, t1, ticks, times, data, reason) VALUES (?, ?, ?, ?, ?,
        (SELECT data FROM times WHERE id=?), (SELECT data FROM data WHERE id=?), ?)""",
        (*chunk[:5], chunk.times, chunk.data, reason),
    )
    log.error("run %d, metric %d: a damaged chunk was set aside: %s", chunk.run, chunk.metric, reason)


def _set_pack_aside(connection: sqlite3.Connection, pack: Pack, reason: str) -> None:
    """Copy a pack to the table `damaged`; the caller removes it."""
    connection.execute(
        "INSERT INTO damaged (run, t0, t1, ticks, data, reason) VALUES (?, ?, ?, ?, ?, ?)",
        (pack.run, pack.t0, pack.t1, pack.ticks, pack.body, reason),
    )
    log.error("run %d: a damaged pack was set aside: %s", pack.run, reason)
