"""Sampled metrics of many runs: a line of each run, over all of its devices and hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Grid, grid
from runvitals.readers.journals.key_filter import KeyFilter, find
from runvitals.server.charts.log_time import log_grids, read_log_buckets
from runvitals.server.charts.overlay.axis import Axis, Extract, check_count
from runvitals.server.charts.overlay.lines import Line, LinePart, combine_parts
from runvitals.server.charts.series import bucket_values
from runvitals.server.library.run_library import BucketedSeries, NamedRun, RunView, SeriesSelection

_PLACEHOLDER = re.compile(r"\{\w+\}")


@dataclass(slots=True)
class SystemQuery:
    """The series that are requested of each run.

    The buckets of all lines are those of a chart of a single run: they begin at multiples of their width
    since 1970. On the axis `relative`, x is counted from the beginning of the bucket in which the run
    started, so that the lines share their x.

    Args:
        keys: keys, globs, or templates of metrics (`gpu.{i}.temp`); the series that one of them matches are
            one line.
        grids: of times since the start, instead of a width: the axis is logarithmic.
    """

    keys: Sequence[str]
    axis: Axis
    part: Extract
    width: int | None
    grids: Sequence[Grid] = ()
    _selection: SeriesSelection = field(init=False)
    _filters: dict[str, Callable[[str], bool]] = field(init=False)
    _matches: dict[str, list[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._selection = SeriesSelection(tuple(_PLACEHOLDER.sub("*", key) for key in self.keys))
        self._filters = {key: _filter(key) for key in self.keys}

    def lines(self, run: NamedRun, view: RunView) -> dict[str, Line]:
        """By requested key: the line of a run, unless it has no such series."""
        parts: dict[str, list[LinePart]] = {}
        for series in self._read(run, view):
            for key in self._requested_keys(series.key):
                parts.setdefault(key, []).append(_part(series))
        return {key: self._line(run, combine_parts(of_key)) for key, of_key in parts.items()}

    def _read(self, run: NamedRun, view: RunView) -> list[BucketedSeries]:
        if self.width is None:
            return read_log_buckets(view, self._selection, run.started_ms, self.grids)
        on = self._grid(run, self.width)
        return [] if on is None else view.read_buckets(self._selection, on)

    def _zero(self, run: NamedRun) -> int:
        if self.axis.kind != "relative":
            return 0
        return run.started_ms // self.width * self.width if self.width else run.started_ms

    def _grid(self, run: NamedRun, width: int) -> Grid | None:
        """Return the buckets of a run in the requested part of x; None if there are none."""
        zero = self._zero(run)
        first, last = run.started_ms, run.end_ms + width  # a last sample may come after the end
        if self.part.first is not None:
            first = max(first, zero + floor(self.part.first))
        if self.part.last is not None:
            last = min(last, zero + floor(self.part.last))
        if last < first:
            return None
        return Grid(first // width * width, width, last // width - first // width + 1)

    def _requested_keys(self, key: str) -> list[str]:
        """Return the requested keys that match this one."""
        keys = self._matches.get(key)
        if keys is None:
            keys = [requested for requested, matches in self._filters.items() if matches(key)]
            self._matches[key] = keys
        return keys

    def _line(self, run: NamedRun, part: LinePart) -> Line:
        buckets = part.buckets
        x = (buckets.t - self._zero(run)).astype(np.float64)
        return Line(run.id, x, part.values, buckets.min, buckets.max, buckets.n)


def system_query(runs: Sequence[NamedRun], keys: Sequence[str], axis: Axis, part: Extract) -> SystemQuery:
    """Return the query for some runs: the buckets are so wide that the longest of them has enough points.

    Raises:
        ValueError: an invalid key; the requested width is too narrow; a logarithmic scale of times of day.
    """
    relative = axis.kind == "relative"
    first = 0 if relative else min((run.started_ms for run in runs), default=0)
    last = max((run.end_ms - run.started_ms if relative else run.end_ms for run in runs), default=first)
    low = first if part.first is None else max(first, floor(part.first))
    high = max(low, last if part.last is None else min(last, floor(part.last)))
    if part.log:
        if not relative or part.width is not None:
            raise ValueError("scale=log of system metrics: expected x=relative and no width")
        return SystemQuery(keys, axis, part, None, log_grids(low, high, part.points))
    if part.width is not None:
        check_count(low, high, part.width)
        return SystemQuery(keys, axis, part, max(1, int(part.width)))
    return SystemQuery(keys, axis, part, grid(low, high, part.points).width_ms)


def _part(series: BucketedSeries) -> LinePart:
    deadline.check()
    return LinePart(series.buckets, bucket_values(series.key, series.buckets))


def _filter(key: str) -> Callable[[str], bool]:
    """Return whether a key is requested by a key, a glob or a template."""
    if not _PLACEHOLDER.search(key):
        return KeyFilter([key])

    def is_of_template(other: str) -> bool:
        match = find(other)
        return match is not None and match.metric.key == key

    return is_of_template
