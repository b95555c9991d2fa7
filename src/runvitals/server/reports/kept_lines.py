"""Lines that the panels of a page share: what several of them show is read of each run at once.

Most of the work of a request is to open runs, one after the other, and not to read one metric more of each.
So the first panel of a page reads the metrics of the next ones too, which are requested a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from cachetools import LRUCache

from runvitals.base import deadline
from runvitals.server.charts.overlay.axis import Axis, Extract
from runvitals.server.charts.overlay.lines import KeyLines
from runvitals.server.charts.overlay.run_reading import MAX_POINTS, RunReading
from runvitals.server.http.workers import DEADLINE_S
from runvitals.server.library.run_library import NamedRun, TooMuch
from runvitals.server.reports.panels import Source
from runvitals.server.reports.run_sets import ShownRuns

_KEPT_BYTES: Final = 64 * 1024 * 1024
MOST_AHEAD: Final = 8
"""Metrics of other panels that are read with those of the first."""


class LineQuery(NamedTuple):
    """Which lines a panel shows, besides their metrics. Equal ones are of the same moment."""

    run_sets: tuple[ShownRuns, ...]
    source: Source
    axis: Axis
    part: Extract


class _Kept(NamedTuple):
    lines: KeyLines
    problems: tuple[str, ...]


class KeptLines:
    """Keeps the lines of panels as long as the runs of their run sets are kept."""

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[LineQuery, str], _Kept] = LRUCache(_KEPT_BYTES, _size)
        self._locks: WeakValueDictionary[Hashable, anyio.Lock] = WeakValueDictionary()

    async def read(
        self, query: LineQuery, runs: Sequence[NamedRun], keys: Sequence[str], ahead: Sequence[str]
    ) -> tuple[list[KeyLines], dict[str, None]]:
        """Return the lines of metrics, and parts of them that could not be read.

        Args:
            ahead: metrics that others will ask for in a moment.

        Raises:
            ValueError: a key is invalid, or too much would have to be read.
            TooSlow: it takes too long.
        """
        lock = self._locks.setdefault(query, anyio.Lock())
        async with lock:  # of panels that are requested together, one reads for all
            kept_lines = {key: self._kept.get((query, key)) for key in keys}
            if missing := [key for key in keys if kept_lines[key] is None]:
                kept_lines |= await self._read(
                    query, runs, missing, self._fitting(query, runs, missing, ahead)
                )
        lines: list[KeyLines] = []
        problems: dict[str, None] = {}
        for key in keys:
            kept = kept_lines[key]
            assert kept is not None
            lines.append(kept.lines)
            problems |= dict.fromkeys(kept.problems)
        return lines, problems

    def _fitting(
        self, query: LineQuery, runs: Sequence[NamedRun], keys: Sequence[str], ahead: Sequence[str]
    ) -> list[str]:
        """Return the first metrics of other panels that are not kept, as many as one reading may have."""
        others = [key for key in ahead if key not in keys and (query, key) not in self._kept]
        room = MAX_POINTS // max(1, len(runs) * query.part.points) - len(keys)
        return others[: max(0, min(MOST_AHEAD, room))]

    async def _read(
        self, query: LineQuery, runs: Sequence[NamedRun], keys: Sequence[str], ahead: Sequence[str]
    ) -> dict[str, _Kept]:
        try:
            return await self._lines(query, runs, [*keys, *ahead])
        except TooMuch:
            if not ahead:
                raise
            return await self._lines(query, runs, keys)

    async def _lines(
        self, query: LineQuery, runs: Sequence[NamedRun], keys: Sequence[str]
    ) -> dict[str, _Kept]:
        reading = RunReading(runs)
        read = reading.logged if query.source == "logged" else reading.system
        lines = await read(keys, query.axis, query.part)
        lines_of_keys = await anyio.to_thread.run_sync(_in_time, lines)
        kept = {key_lines.key: _Kept(key_lines, tuple(reading.problems)) for key_lines in lines_of_keys}
        for key, of_key in kept.items():
            if _size(of_key) <= _KEPT_BYTES:
                self._kept[query, key] = of_key
        return kept


def _in_time(lines: Callable[[], Iterable[KeyLines]]) -> list[KeyLines]:
    with deadline.within(DEADLINE_S):
        return list(lines())


def _size(kept: _Kept) -> int:
    return 1000 + sum(
        sum(column.nbytes for column in (line.x, line.y, line.low, line.high, line.n))
        for line in kept.lines.lines
    )
