"""Samples along a logarithmic time axis: buckets that get wider with the time since a run began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, log2

from runvitals.base.buckets import Grid, combine
from runvitals.server.library.run_library import BucketedSeries, RunView, SeriesSelection

_LEAST_OF_OCTAVE = 16
"""Buckets between a time and twice that time: the widest is a 38th of a decade."""


def log_grids(first: int, last: int, points: int) -> list[Grid]:
    """Return grids of times since a beginning: each ends at twice the time at which it begins.

    Together they have about `points` buckets, or more where `_LEAST_OF_OCTAVE` needs them.

    Args:
        first, last: ms since the beginning, both included.
    """
    first = max(1, first)
    if last < first:
        return []
    octaves = max(1.0, log2((last + 1) / first))
    of_octave = max(_LEAST_OF_OCTAVE, 2 ** ceil(log2(points / octaves)))
    grids = []
    begin = 1 << (first.bit_length() - 1)
    while begin <= last:
        width = max(1, begin // of_octave)
        low = max(begin, begin + (first - begin) // width * width)
        count = (min(last, 2 * begin - 1) - low) // width + 1
        grids.append(Grid(low, width, count))
        begin *= 2
    return grids


def read_log_buckets(
    view: RunView, selection: SeriesSelection, zero_ms: int, grids: Iterable[Grid]
) -> list[BucketedSeries]:
    """Return the buckets of each series, on grids of times since `zero_ms` (ms UTC)."""
    parts: dict[tuple[str, str, str], list[BucketedSeries]] = {}
    for on in grids:
        for series in view.read_buckets(selection, Grid(zero_ms + on.t0_ms, on.width_ms, on.count)):
            parts.setdefault((series.key, series.host, series.role), []).append(series)
    return [_joined(of_series) for of_series in parts.values()]


def _joined(parts: Sequence[BucketedSeries]) -> BucketedSeries:
    first = parts[0]
    return BucketedSeries(first.key, first.host, first.role, combine([part.buckets for part in parts]))
