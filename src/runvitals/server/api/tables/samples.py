"""Every sample of a run as a table, window by window: a long run takes no more memory than a short one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from runvitals.query.series import Series
from runvitals.server import series
from runvitals.server.library import OpenedRun, RunView, SeriesSelection, TooMuch

WINDOW_VALUES = 500_000
"""Values that are read at once, about: 8 MB. Four times as many are not."""


@dataclass(frozen=True, slots=True)
class SampleRange:
    """What there is to read: from when to when (ms UTC, both included), which keys, about how many values."""

    t0: int
    t1: int
    keys: list[str]
    values: int


class SampleWindow(NamedTuple):
    """Some of the samples, and what of them could not be read."""

    series: list[Series]
    problems: list[str]


def stretch(view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None) -> SampleRange:
    """What a run has between two times; those that are left open are its own.

    Raises:
        ValueError: t1 before t0.
    """
    start, end = series.stretch(view, selection, t0, t1)
    summaries = view.summaries(selection)
    extent = view.extent(selection)
    if extent is not None:
        start, end = max(start, extent[0]), min(end, extent[1])
    return SampleRange(start, end, sorted({one.key for one in summaries}), sum(one.n for one in summaries))


async def windows(run: OpenedRun, selection: SeriesSelection, of: SampleRange) -> AsyncIterator[SampleWindow]:
    """The samples, some at a time, in order of time."""

    def read(view: RunView) -> SampleWindow:
        noted = view.note_problems()
        return SampleWindow(view.samples(selection, at, until, most), list(noted))

    width = max(1, (of.t1 - of.t0 + 1) * WINDOW_VALUES // max(1, of.values))
    at = of.t0
    while at <= of.t1:
        until = min(of.t1, at + width - 1)
        most = 4 * WINDOW_VALUES if until > at else None
        try:
            found = await run.use(read)
        except TooMuch:
            width = max(1, (until - at + 1) // 2)
            continue
        if found.series or found.problems:
            yield found
        at = until + 1
        if 4 * sum(len(one) for one in found.series) < WINDOW_VALUES:
            width *= 2
