"""All samples of a run, read in windows of time so that a long run takes no more memory than a short one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from runvitals.readers.journals.series import Series
from runvitals.server.charts.series import time_range
from runvitals.server.library.run_library import OpenedRun, RunView, SeriesSelection, TooMuch

WINDOW_VALUES = 500_000
"""About how many values are read together: 8 MB. A window with four times as many is halved."""


@dataclass(frozen=True, slots=True)
class SampleRange:
    """The samples to read: times (ms UTC, both included), keys, and about how many values."""

    t0: int
    t1: int
    keys: list[str]
    values: int


class SampleWindow(NamedTuple):
    """Some of the samples, and problems with reading them."""

    series: list[Series]
    problems: list[str]


def sample_range(view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None) -> SampleRange:
    """Return the samples of a run between two times; None means the first and the last sample.

    Raises:
        ValueError: t1 before t0.
    """
    start, end = time_range(view, selection, t0, t1)
    summaries = view.summaries(selection)
    extent = view.extent(selection)
    if extent is not None:
        start, end = max(start, extent[0]), min(end, extent[1])
    return SampleRange(start, end, sorted({s.key for s in summaries}), sum(s.n for s in summaries))


async def windows(
    run: OpenedRun, selection: SeriesSelection, requested: SampleRange
) -> AsyncIterator[SampleWindow]:
    """Yield the samples of a range in order of time, one window after another."""

    def read(view: RunView) -> SampleWindow:
        noted = view.note_problems()
        return SampleWindow(view.samples(selection, at, until, most), list(noted))

    width = max(1, (requested.t1 - requested.t0 + 1) * WINDOW_VALUES // max(1, requested.values))
    at = requested.t0
    while at <= requested.t1:
        until = min(requested.t1, at + width - 1)
        most = 4 * WINDOW_VALUES if until > at else None
        try:
            window = await run.use(read)
        except TooMuch:
            width = max(1, (until - at + 1) // 2)
            continue
        if window.series or window.problems:
            yield window
        at = until + 1
        if 4 * sum(len(series) for series in window.series) < WINDOW_VALUES:
            width *= 2
