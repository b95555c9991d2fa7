"""Compacting a run that has been sealed many times, or will not be again: fewer, longer chunks, and its
days rolled up.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from runvitals.backoff import Backoff
from runvitals.store.samples import codec
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.contract import END_OF_TIME_MS, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite_chunks import chunks, database, day_rollup
from runvitals.store.samples.sqlite_chunks.blocks import Group
from runvitals.store.samples.sqlite_chunks.chunks import Chunk, Decoder, Writer
from runvitals.store.samples.sqlite_chunks.month_files import Month, Months
from runvitals.store.samples.sqlite_chunks.settings import Settings

_MOST_SAMPLES = 250_000
_SEALS = 8
_LOOK_S = 30.0
_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 6 * 3600.0
"""Between two tries of what cannot be compacted; each time twice as long."""

log = logging.getLogger("runvitals.store")


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


def _due(
    connection: sqlite3.Connection, seals: int, quiet_since_ms: int, without: Collection[int]
) -> tuple[int, bool] | None:
    """A run sealed so many times since it was compacted, or not since a time; whether the latter."""
    row = connection.execute(
        """SELECT run, sealed_ms < ?2 FROM run WHERE seals > 0 AND (seals >= ?1 OR sealed_ms < ?2)
        AND run NOT IN (SELECT value FROM json_each(?3)) ORDER BY sealed_ms LIMIT 1""",
        (seals, quiet_since_ms, json.dumps(list(without))),
    ).fetchone()
    return None if row is None else (int(row[0]), bool(row[1]))


class Compactor:
    """Finds what there is to compact, and does it a step at a time, in the sealer's thread.

    A run that cannot be compacted is passed over for a while, and holds up no other; so is a month that
    cannot be written at present.

    Args:
        clock_ms: the time of day.
        clock_s: a monotonic clock.
    """

    def __init__(
        self,
        months: Months,
        settings: Settings,
        clock_ms: Callable[[], int],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._months = months
        self._settings = settings
        self._clock_ms = clock_ms
        self._clock_s = clock_s
        # Month → when to look, whether there is something to do.
        self._look_s = dict.fromkeys(months.there(), 0.0)
        self._failed: dict[tuple[Month, int | None], Backoff] = {}
        self._told: set[tuple[Month, str]] = set()

    def sealed(self, month: Month) -> None:
        """Something was sealed in a month."""
        self._look_s.setdefault(month, self._clock_s() + _LOOK_S)

    def step(self) -> None:
        """Compact some of a run, if there is one that should be."""
        now_s = self._clock_s()
        quiet_since_ms = self._clock_ms() - int(self._settings.quiet_s * 1000)
        there = self._months.there()
        for month, look_s in list(self._look_s.items()):
            if month not in there:
                self._forget(month)
            elif look_s <= now_s:
                if self._try_one(month, quiet_since_ms, now_s):
                    return
                self._look_s[month] = now_s + _LOOK_S

    def all(self) -> None:
        """Compact all runs, and give back the space that it freed.

        Raises:
            StoreError: a run cannot be compacted.
        """
        for month in self._months.there():
            while (due := self._find(month, 1, self._clock_ms() + 1, ())) is not None:
                self._compact(month, *due)
            with database.failing(self._months.path(month)):
                database.give_back(self._months.writer(month))

    def _try_one(self, month: Month, quiet_since_ms: int, now_s: float) -> bool:
        """Compact some of a run, or note that it fails; False if there is none to be compacted now."""
        waiting = {run for (of, run), one in self._failed.items() if of == month and not one.due(now_s)}
        if None in waiting:
            return False
        run: int | None = None
        try:
            due = self._find(month, _SEALS, quiet_since_ms, {one for one in waiting if one is not None})
            if due is None:
                return False
            run = due[0]
            self._compact(month, *due)
        except Exception as error:  # noqa: BLE001 - told, and tried again later; others go on meanwhile
            self._note(month, None if isinstance(error, StoreUnavailable) else run, error, now_s)
        else:
            self._failed.pop((month, run), None)
            self._failed.pop((month, None), None)
        return True

    def _note(self, month: Month, run: int | None, error: Exception, now_s: float) -> None:
        """A run, or for None the whole month, fails."""
        self._months.drop_writer(month)
        self._failed.setdefault((month, run), Backoff(_FIRST_RETRY_S, _LAST_RETRY_S)).failed(now_s)
        if (month, str(error)) not in self._told:
            self._told.add((month, str(error)))
            what = self._months.path(month) if run is None else f"{self._months.path(month)}, run {run}"
            known = isinstance(error, StoreError)
            log.error("%s cannot be compacted at present: %s", what, error, exc_info=not known)

    def _forget(self, month: Month) -> None:
        """The month is gone."""
        del self._look_s[month]
        self._failed = {key: one for key, one in self._failed.items() if key[0] != month}
        self._told = {key for key in self._told if key[0] != month}

    def _find(
        self, month: Month, seals: int, quiet_since_ms: int, without: Collection[int]
    ) -> tuple[int, bool] | None:
        with database.failing(self._months.path(month)):
            return _due(self._months.writer(month), seals, quiet_since_ms, without)

    def _compact(self, month: Month, run: int, is_quiet: bool) -> None:
        """Compact some of a run."""
        connection = self._months.writer(month)
        with database.failing(self._months.path(month)), database.transaction(connection):
            if not compact(connection, run, self._settings):
                _finish(connection, month, run, is_quiet)


def _finish(connection: sqlite3.Connection, month: Month, run: int, is_quiet: bool) -> None:
    """Roll up a run's days, the last one only if nothing more is expected; it is compacted then."""
    (t1,) = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
    before_ms = END_OF_TIME_MS if is_quiet else t1 // day_rollup.DAY_MS * day_rollup.DAY_MS
    day_rollup.roll_up(connection, month, run, before_ms)
    connection.execute("UPDATE run SET seals=0 WHERE run=?", (run,))
