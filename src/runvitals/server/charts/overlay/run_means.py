"""The means of a run in buckets, and those of a group of runs.

The widths of buckets are powers of two (of a logarithmic axis, in decades): wider ones consist of whole
narrower ones. So a run is reduced once, without knowing the others, and its means are reduced again to the
width of the widest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, log2, log10
from typing import NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers
from runvitals.server.charts.overlay.axis import (
    LEAST_OF_DECADE,
    Axis,
    Extract,
    Scale,
    is_whole,
    scale_of_width,
)
from runvitals.server.charts.overlay.lines import combine_parts
from runvitals.server.charts.overlay.logged import LoggedPoints, part_of

_NARROWEST = -40
"""The exponent of the narrowest width."""
_WIDEST_OF_LOG = 2.0 ** -ceil(log2(LEAST_OF_DECADE))
"""In decades."""


class RunMeans(NamedTuple):
    """The buckets of one metric of one run that have finite values: where they are, and their means."""

    width: float
    indices: Integers
    values: Floats

    @property
    def nbytes(self) -> int:
        """The memory that it takes, about."""
        return 200 + self.indices.nbytes + self.values.nbytes


class GroupLine(NamedTuple):
    """One metric of a group: the mean of its runs, the lowest and the highest of them, and how many they are.

    Args:
        runs: how many of the group have the metric.
    """

    group: int
    runs: int
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    n: Integers


def run_means(processes: Sequence[LoggedPoints], axis: Axis, part: Extract) -> RunMeans | None:
    """Return the means of what the processes of a run logged; None without finite values.

    They are twice as fine as requested, because other runs may be shorter or longer.
    """
    cut = []
    for x, y in processes:
        within = part.within(x)
        finite = np.isfinite(y[within])
        if finite.any():
            cut.append(LoggedPoints(x[within][finite], y[within][finite]))
    if not cut:
        return None
    low, high = min(float(x[0]) for x, _ in cut), max(float(x[-1]) for x, _ in cut)
    if part.log:
        width = min(_WIDEST_OF_LOG, _width(log10(high / low), 2 * part.points, _NARROWEST))
    else:
        narrowest = 0 if is_whole(axis, [x for x, _ in cut]) else _NARROWEST
        width = _width(high - low, 2 * part.points, narrowest)
    scale = scale_of_width(axis, width, part.log)
    combined = combine_parts([part_of(scale, points) for points in cut])
    return RunMeans(width, combined.buckets.t, combined.values)


def means_of_line(x: Floats, y: Floats, width: float) -> RunMeans | None:
    """Return the means of a line whose buckets begin at multiples of a width."""
    finite = np.isfinite(y)
    if not finite.any():
        return None
    return RunMeans(width, np.round(x[finite] / width).astype(np.int64), y[finite])


def _width(extent: float, points: int, narrowest: int) -> float:
    if extent <= 0:
        return 2.0**narrowest
    return 2.0 ** max(narrowest, ceil(log2(extent / points)))


def shared_width(runs: Sequence[RunMeans], part: Extract) -> float:
    """Return the narrowest width of which all runs together have at most the requested number of buckets."""
    width = max((run.width for run in runs), default=1.0)
    if not runs:
        return width
    widest = _WIDEST_OF_LOG if part.log else inf
    low = min(float(run.indices[0]) * run.width for run in runs)
    high = max(float(run.indices[-1]) * run.width for run in runs)
    while (high - low) / width >= part.points and width < widest:
        width *= 2
    return width


def group_line(group: int, runs: Sequence[RunMeans], scale: Scale) -> GroupLine | None:
    """Return the line of a group on a scale with a width; None if none of its runs has values.

    A run counts from its first to its last bucket: where it has no value between two, a straight line between
    them has. Otherwise the mean would jump wherever runs log at different steps.
    """
    assert scale.width is not None
    width = scale.width
    wider = [_widened(run, width) for run in runs]
    if not wider:
        return None
    indices = np.unique(np.concatenate([run.indices for run in wider]))
    count = np.zeros(len(indices), np.int64)
    total = np.zeros(len(indices))
    low, high = np.full(len(indices), np.inf), np.full(len(indices), -np.inf)
    for run in wider:
        deadline.check()
        first, last = np.searchsorted(indices, (run.indices[0], run.indices[-1]))
        of_run = slice(int(first), int(last) + 1)
        values = np.interp(indices[of_run], run.indices, run.values)
        count[of_run] += 1
        low[of_run], high[of_run] = np.minimum(low[of_run], values), np.maximum(high[of_run], values)
        with np.errstate(over="ignore"):
            total[of_run] += values
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.minimum(np.maximum(total / count, low), high)  # summation rounds, and may overflow
    return GroupLine(group, len(wider), scale.x(indices), mean, low, high, count)


def _widened(run: RunMeans, width: float) -> RunMeans:
    factor = round(width / run.width)
    if factor == 1:
        return run
    indices = np.floor_divide(run.indices, factor)
    starts = np.flatnonzero(np.append(True, indices[1:] != indices[:-1]))
    sizes = np.diff(np.append(starts, len(indices)))
    with np.errstate(over="ignore"):
        values = np.add.reduceat(run.values, starts) / sizes
    return RunMeans(width, indices[starts], values)
