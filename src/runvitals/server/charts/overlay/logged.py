"""Logged metrics of many runs: a line of each run, over all of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Grid, reduce
from runvitals.server.charts.attempts import attempts_of_ranks
from runvitals.server.charts.overlay.axis import Axis, Extract, Scale, scale_of
from runvitals.server.charts.overlay.lines import KeyLines, Line, LinePart, combine_parts
from runvitals.server.library.run_library import LoggedColumn, NamedRun, RunView


class LoggedPoints(NamedTuple):
    """The values that one process logged under one name, in ascending order of x."""

    x: Floats
    y: Floats


def read_logged(
    run: NamedRun, view: RunView, keys: Sequence[str], axis: Axis
) -> dict[str, list[LoggedPoints]]:
    """By name, what each process of a run logged."""
    names = [*keys, axis.metric] if axis.kind == "metric" else keys
    ranks = attempts_of_ranks(view.logged_columns(dict.fromkeys(names)))
    # Over time nothing is replaced: earlier values are further left.
    is_time = axis.kind in ("relative", "wall")
    points: dict[str, list[LoggedPoints]] = {}
    for rank in ranks:
        columns = {
            key: attempts.all() if is_time else attempts.newest for key, attempts in rank.columns.items()
        }
        for key in keys:
            if key in columns:
                deadline.check()
                points.setdefault(key, []).append(_values(run, columns, key, axis))
    return points


def _values(run: NamedRun, columns: Mapping[str, LoggedColumn], key: str, axis: Axis) -> LoggedPoints:
    steps, times, values = columns[key]
    if axis.kind == "step":
        return LoggedPoints(steps, values)
    if axis.kind == "metric":
        x = _at_steps(columns.get(axis.metric), steps)
    else:
        x = times - run.started_ms if axis.kind == "relative" else times
    rows = np.flatnonzero(np.isfinite(x))
    order = rows[np.argsort(x[rows], kind="stable")]
    return LoggedPoints(x[order], values[order])


def _at_steps(other: LoggedColumn | None, steps: Floats) -> Floats:
    """Return the values that another name has at these steps; NaN where it has none."""
    if other is None or not len(other[0]):
        return np.full(len(steps), np.nan)
    position = np.searchsorted(other[0], steps, side="right") - 1
    values = np.where(other[0][position] == steps, other[2][position], np.nan)
    return np.where(position >= 0, values, np.nan)


def logged_lines(
    key: str, by_run: Mapping[str, Sequence[LoggedPoints]], axis: Axis, part: Extract
) -> KeyLines:
    """Return the lines of one name, from the values that each run logged.

    Raises:
        ValueError: the requested width is too narrow.
    """
    cut = {
        run: [LoggedPoints(x[part.within(x)], y[part.within(x)]) for x, y in processes]
        for run, processes in by_run.items()
    }
    columns = [values.x for processes in cut.values() for values in processes]
    scale = scale_of(axis, columns, part)
    lines = []
    for run, processes in cut.items():
        deadline.check()
        parts = [part_of(scale, values) for values in processes if len(values.x)]
        if parts:
            combined = combine_parts(parts)
            buckets = combined.buckets
            lines.append(Line(run, scale.x(buckets.t), combined.values, buckets.min, buckets.max, buckets.n))
    return KeyLines(key, scale.width, lines)


def part_of(scale: Scale, values: LoggedPoints) -> LinePart:
    """Return the buckets of one process, which has values."""
    indices = scale.indices(values.x)
    first, last = int(indices[0]), int(indices[-1])
    buckets = reduce(Grid(first, 1, last - first + 1), indices, values.y)
    return LinePart(buckets, buckets.mean)
