"""Compacting a run that has been sealed many times, or will not be again: fewer, longer chunks, and its
days rolled up.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from runvitals.store import codec
from runvitals.store.codec import Corrupt
from runvitals.store.contract import END_OF_TIME_MS
from runvitals.store.sqlite_chunks import chunks, database, rollup
from runvitals.store.sqlite_chunks.blocks import Group
from runvitals.store.sqlite_chunks.chunks import Chunk, Decoder, Writer
from runvitals.store.sqlite_chunks.months import Month, Months
from runvitals.store.sqlite_chunks.settings import Settings

_MOST_SAMPLES = 250_000
_SEALS = 8
_LOOK_S = 30.0


def compact(connection: sqlite3.Connection, run: int, settings: Settings) -> bool:
    """Put adjacent chunks of a run together, some at a time, inside a transaction.

    Returns:
        whether there is more to do.
    """
    writer, decoder = Writer(connection), Decoder(connection)
    samples = 0
    for metric in chunks.metrics_of(connection, run):
        for some in _to_join(chunks.of_series(connection, run, metric), settings.compact_ticks):
            if samples > _MOST_SAMPLES:
                writer.write()
                return True
            try:
                t = np.concatenate([decoder.times(chunk) for chunk in some])
                values = np.concatenate([decoder.values(chunk) for chunk in some])
            except Corrupt:
                continue  # they stay as they are: readers report what is damaged, and read the others
            writer.remove(some)
            writer.add(run, Group((metric,), t, values.reshape(-1, 1)), codec.COMPACT_LEVEL)
            samples += len(t)
    writer.write()
    return False


def _to_join(there: Sequence[Chunk], most_ticks: int) -> Iterator[list[Chunk]]:
    """Stretches of two or more chunks that become one; a short rest at the end goes into the last one."""
    stretches: list[list[Chunk]] = []
    ticks: list[int] = []
    for chunk in there:
        if stretches and ticks[-1] + chunk.ticks <= most_ticks:
            stretches[-1].append(chunk)
            ticks[-1] += chunk.ticks
        else:
            stretches.append([chunk])
            ticks.append(chunk.ticks)
    if len(stretches) > 1 and 2 * (ticks[-2] + ticks[-1]) <= 3 * most_ticks:
        stretches[-2].extend(stretches.pop())
    yield from (some for some in stretches if len(some) > 1)


def _due(connection: sqlite3.Connection, seals: int, quiet_since_ms: int) -> tuple[int, bool] | None:
    """A run sealed so many times since it was compacted, or not since a time; whether the latter."""
    row = connection.execute(
        """SELECT run, sealed_ms < ?2 FROM run WHERE seals > 0 AND (seals >= ?1 OR sealed_ms < ?2)
        ORDER BY sealed_ms LIMIT 1""",
        (seals, quiet_since_ms),
    ).fetchone()
    return None if row is None else (int(row[0]), bool(row[1]))


class Compactor:
    """Finds what there is to compact, and does it a step at a time, in the sealer's thread."""

    def __init__(self, months: Months, settings: Settings, clock_ms: Callable[[], int]) -> None:
        self._months = months
        self._settings = settings
        self._clock_ms = clock_ms
        # Month → when to look, on the monotonic clock, whether there is something to do.
        self._look_s = dict.fromkeys(months.there(), 0.0)

    def sealed(self, month: Month) -> None:
        """Something was sealed in a month."""
        self._look_s.setdefault(month, time.monotonic() + _LOOK_S)

    def step(self) -> None:
        """Compact some of a run, if there is one that should be."""
        now_s = time.monotonic()
        quiet_since_ms = self._clock_ms() - int(self._settings.quiet_s * 1000)
        for month, look_s in list(self._look_s.items()):
            if month not in self._months.there():
                del self._look_s[month]
            elif look_s <= now_s:
                if self._compact_one(month, _SEALS, quiet_since_ms):
                    return
                self._look_s[month] = now_s + _LOOK_S

    def all(self) -> None:
        """Compact all runs, and give back the space that it freed."""
        for month in self._months.there():
            while self._compact_one(month, 1, self._clock_ms() + 1):
                pass
            with database.failing(self._months.path(month)):
                database.give_back(self._months.writer(month))

    def _compact_one(self, month: Month, seals: int, quiet_since_ms: int) -> bool:
        """Compact some of one run; False if there is none that is due."""
        connection = self._months.writer(month)
        with database.failing(self._months.path(month)):
            due = _due(connection, seals, quiet_since_ms)
            if due is None:
                return False
            run, is_quiet = due
            with database.transaction(connection):
                if not compact(connection, run, self._settings):
                    _finish(connection, month, run, is_quiet)
            return True


def _finish(connection: sqlite3.Connection, month: Month, run: int, is_quiet: bool) -> None:
    """Roll up a run's days, the last one only if nothing more is expected; it is compacted then."""
    (t1,) = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
    before_ms = END_OF_TIME_MS if is_quiet else t1 // rollup.DAY_MS * rollup.DAY_MS
    rollup.roll_up(connection, month, run, before_ms)
    connection.execute("UPDATE run SET seals=0 WHERE run=?", (run,))
