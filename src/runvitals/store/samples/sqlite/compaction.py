"""Compaction: merges small chunks.

They are those of runs that were sealed often, or that are no longer written to. Also updates their day
roll-up.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from runvitals.base.backoff import Backoff
from runvitals.store.samples import codec
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.interface import END_OF_TIME_MS, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite import chunks, database, day_rollup
from runvitals.store.samples.sqlite.blocks import Group
from runvitals.store.samples.sqlite.chunks import Chunk, ChunkDecoder, ChunkWriter
from runvitals.store.samples.sqlite.month_files import Month, MonthFiles
from runvitals.store.samples.sqlite.settings import StoreSettings

_MAX_SAMPLES = 250_000
_MIN_SEALS = 8
_CHECK_EVERY_S = 30.0
_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 6 * 3600.0
"""Delays before a failed compaction is retried; they double each time."""

log = logging.getLogger("runvitals.store")


def compact(connection: sqlite3.Connection, run: int, settings: StoreSettings) -> bool:
    """Merge some adjacent chunks of a run, inside a transaction.

    Returns:
        whether there are more.
    """
    writer, decoder = ChunkWriter(connection), ChunkDecoder(connection)
    samples = 0
    for metric in chunks.metrics_of(connection, run):
        for adjacent in _to_merge(chunks.of_series(connection, run, metric), settings.compact_ticks):
            if any(chunk.is_cold for chunk in adjacent):
                continue  # they were compacted before they were moved
            if samples > _MAX_SAMPLES:
                writer.write()
                return True
            try:
                t = np.concatenate([decoder.times(chunk) for chunk in adjacent])
                values = np.concatenate([decoder.values(chunk) for chunk in adjacent])
            except CorruptData:
                continue  # left as they are: readers report the damaged ones and return the others
            writer.remove(adjacent)
            writer.add(run, Group((metric,), t, values.reshape(-1, 1)), codec.COMPACT_LEVEL)
            samples += len(t)
    writer.write()
    return False


def _to_merge(chunks_of_series: Sequence[Chunk], max_ticks: int) -> Iterator[list[Chunk]]:
    """Groups of two or more chunks that become one; a short remainder is added to the last group."""
    merged: list[list[Chunk]] = []
    ticks: list[int] = []
    for chunk in chunks_of_series:
        if merged and ticks[-1] + chunk.ticks <= max_ticks:
            merged[-1].append(chunk)
            ticks[-1] += chunk.ticks
        else:
            merged.append([chunk])
            ticks.append(chunk.ticks)
    if len(merged) > 1 and 2 * (ticks[-2] + ticks[-1]) <= 3 * max_ticks:
        merged[-2].extend(merged.pop())
    yield from (group for group in merged if len(group) > 1)


def _due(
    connection: sqlite3.Connection, seals: int, quiet_since_ms: int, excluded: Collection[int]
) -> tuple[int, bool] | None:
    """Return a run that is to be compacted, and whether it has been quiet.

    It was sealed at least `seals` times since it was compacted, or not since `quiet_since_ms`, and then it is
    quiet.
    """
    row = connection.execute(
        """SELECT run, sealed_ms < ?2 FROM run WHERE seals > 0 AND (seals >= ?1 OR sealed_ms < ?2)
        AND run NOT IN (SELECT value FROM json_each(?3)) ORDER BY sealed_ms LIMIT 1""",
        (seals, quiet_since_ms, json.dumps(list(excluded))),
    ).fetchone()
    return None if row is None else (int(row[0]), bool(row[1]))


class Compactor:
    """Finds runs to compact, and compacts them step by step. For use in the maintenance thread.

    If the compaction of a run fails, or a month file cannot be written to, it is retried later, and the
    others are compacted meanwhile.

    Args:
        clock_ms: the time now, ms UTC.
        clock_s: a monotonic clock.
    """

    def __init__(
        self,
        months: MonthFiles,
        settings: StoreSettings,
        clock_ms: Callable[[], int],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._months = months
        self._settings = settings
        self._clock_ms = clock_ms
        self._clock_s = clock_s
        # When to check each month.
        self._check_s = dict.fromkeys(months.existing(), 0.0)
        self._failed: dict[tuple[Month, int | None], Backoff] = {}
        self._logged: set[tuple[Month, str]] = set()

    def note_sealed(self, month: Month) -> None:
        """Note that samples were sealed in a month."""
        self._check_s.setdefault(month, self._clock_s() + _CHECK_EVERY_S)

    def step(self) -> None:
        """Compact a part of a run, if one is due."""
        now_s = self._clock_s()
        quiet_since_ms = self._clock_ms() - int(self._settings.quiet_s * 1000)
        existing = self._months.existing()
        for month, check_s in list(self._check_s.items()):
            if month not in existing:
                self._forget(month)
            elif check_s <= now_s:
                if self._try_one(month, quiet_since_ms, now_s):
                    return
                self._check_s[month] = now_s + _CHECK_EVERY_S

    def compact_all(self) -> None:
        """Compact all runs, and release the freed space to the file system.

        Raises:
            StoreError: a run could not be compacted.
        """
        for month in self._months.existing():
            while (due := self._find(month, 1, self._clock_ms() + 1, ())) is not None:
                self._compact(month, *due)
            with database.store_errors(self._months.path(month)):
                database.release_free_pages(self._months.writer(month))

    def _try_one(self, month: Month, quiet_since_ms: int, now_s: float) -> bool:
        """Compact a part of a run of a month, or record its failure; False if no run is due."""
        waiting = {
            run
            for (failed_month, run), backoff in self._failed.items()
            if failed_month == month and not backoff.due(now_s)
        }
        if None in waiting:
            return False
        run: int | None = None
        try:
            due = self._find(month, _MIN_SEALS, quiet_since_ms, {run for run in waiting if run is not None})
            if due is None:
                return False
            run = due[0]
            self._compact(month, *due)
        except Exception as error:  # noqa: BLE001 - logged, and retried later
            self._record_failure(month, None if isinstance(error, StoreUnavailable) else run, error, now_s)
        else:
            self._failed.pop((month, run), None)
            self._failed.pop((month, None), None)
        return True

    def _record_failure(self, month: Month, run: int | None, error: Exception, now_s: float) -> None:
        """Schedule a retry of a run, or of the whole month if `run` is None."""
        self._months.drop_writer(month)
        self._failed.setdefault((month, run), Backoff(_FIRST_RETRY_S, _LAST_RETRY_S)).note_failure(now_s)
        if (month, str(error)) not in self._logged:
            self._logged.add((month, str(error)))
            where = self._months.path(month) if run is None else f"{self._months.path(month)}, run {run}"
            unexpected = not isinstance(error, StoreError)
            log.error("could not compact %s, will retry: %s", where, error, exc_info=unexpected)

    def _forget(self, month: Month) -> None:
        """Drop a month whose file was deleted."""
        del self._check_s[month]
        self._failed = {key: backoff for key, backoff in self._failed.items() if key[0] != month}
        self._logged = {key for key in self._logged if key[0] != month}

    def _find(
        self, month: Month, seals: int, quiet_since_ms: int, excluded: Collection[int]
    ) -> tuple[int, bool] | None:
        with database.store_errors(self._months.path(month)):
            return _due(self._months.writer(month), seals, quiet_since_ms, excluded)

    def _compact(self, month: Month, run: int, is_quiet: bool) -> None:
        """Compact a part of a run."""
        connection = self._months.writer(month)
        with database.store_errors(self._months.path(month)), database.transaction(connection):
            if not compact(connection, run, self._settings):
                _finish(connection, month, run, is_quiet)


def _finish(connection: sqlite3.Connection, month: Month, run: int, is_quiet: bool) -> None:
    """Roll up a run's days (the last one only if the run is quiet), and mark the run as compacted."""
    (t1,) = connection.execute("SELECT t1 FROM run WHERE run=?", (run,)).fetchone()
    before_ms = END_OF_TIME_MS if is_quiet else t1 // day_rollup.DAY_MS * day_rollup.DAY_MS
    day_rollup.roll_up(connection, month, run, before_ms)
    connection.execute("UPDATE run SET seals=0 WHERE run=?", (run,))
