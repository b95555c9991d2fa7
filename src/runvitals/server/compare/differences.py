"""Which metrics differ most between a time range and the time around it.

The statistic is the distance of the medians, |median inside − median outside|, divided by the spread outside:
the median absolute deviation × 1.4826, which estimates a standard deviation and is not affected by outliers.
Where a metric hardly varies outside, 1 % of the range of all its compared values is used instead, so that the
score is at most 100. A spike, which moves no median, has the score of how much farther its farthest value is
from the median outside than the farthest value outside is.

Series of one metric, such as those of all GPUs, are one difference: that of the series which differs most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers, grid
from runvitals.readers.journals.key_filter import find, unit
from runvitals.server.charts.series import bucket_values
from runvitals.server.compare.causes import PARTS, part_of, template_of
from runvitals.server.compare.causes import Part as ChangedPart
from runvitals.server.library.run_library import RunView, SeriesSelection

AROUND = 10
"""The time before and after the range that it is compared with, in lengths of the range."""
_MIN_REACH_MS = 30_000
_PARTS = 2 * AROUND + 1
_MAX_POINTS = 200 * _PARTS
_MAX_VALUES = 1_000_000
"""Values of all series that are read for one response: 48 MB."""
_MIN_INSIDE, _MIN_OUTSIDE = 1, 4
_MIN_LEVEL = 2
"""Values inside that have a level; fewer are a spike, or nothing."""
_MAX_NAMES, _NAMES_AT_ONCE = 1000, 50
_TO_SIGMA = 1.4826
_MIN_SPREAD = 0.01
_LATEST_MS = 2**53

STATISTIC = (
    "level: abs(median inside - median outside) / spread; spike: (farthest inside - farthest outside, from "
    "the median outside) / spread; spread = max(1.4826 * MAD outside, 1% of the range of all values)"
)
_ALIKE = 0.3
"""Series of a metric differ alike with at least this share of the score of the one that differs most."""
_MIN_CAUSE = 3.0
"""The least score with which a probable cause comes first."""


class Window(NamedTuple):
    """A time range, ms UTC, and the range around it; all ends included."""

    t0: int
    t1: int
    around_t0: int
    around_t1: int


@dataclass(frozen=True, slots=True)
class Part:
    """The values of a series inside or outside the range.

    Args:
        mad: the median absolute deviation.
        farthest: the value that is farthest from the median outside.
    """

    n: int
    median: float
    mad: float
    farthest: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How much one metric differs; the fields of `models.DifferenceSchema`.

    Args:
        key, host, role, rank: the series of the metric that differs most.
        series: how many of its series differ alike.
        hosts: on how many hosts.
    """

    kind: Literal["sampled", "logged"]
    key: str
    host: str
    role: str | None
    rank: int | None
    unit: str
    chart: str
    how: Literal["level", "spike"]
    part: ChangedPart
    score: float
    inside: Part
    outside: Part
    series: int = 1
    hosts: int = 1


class _Values(NamedTuple):
    """The values of one series, with the first and the last time that each stands for."""

    kind: Literal["sampled", "logged"]
    key: str
    host: str
    role: str | None
    rank: int | None
    first: Integers | Floats
    last: Integers | Floats
    values: Floats


def differences(view: RunView, selection: SeriesSelection, t0: int, t1: int, limit: int) -> dict[str, Any]:
    """Return the fields of `models.Differences`.

    Totals that only grow are not compared, their rates are.

    Args:
        t0, t1: ms UTC, both included.
        limit: how many metrics to return: the first ones.

    Raises:
        ValueError: t1 before t0.
    """
    if t1 < t0:
        raise ValueError(f"t1 ({t1}) is before t0 ({t0})")
    problems = view.note_problems()
    reach = max(AROUND * (t1 - t0 + 1), _MIN_REACH_MS)
    window = Window(t0, t1, max(-_LATEST_MS, t0 - reach), min(_LATEST_MS, t1 + reach))
    compared = 0
    left_out = 0
    metrics: dict[tuple[str, str], list[Difference]] = {}
    for series in chain(_sampled_values(view, selection, window), _logged_values(view, selection, window)):
        deadline.check()
        difference = _difference(series, window)
        if difference is None:
            left_out += 1
            continue
        compared += 1
        if difference.score > 0:
            name = difference.key if difference.kind == "logged" else template_of(difference.key)
            metrics.setdefault((difference.kind, name), []).append(difference)
    ranked = sorted(map(_together, metrics.values()), key=_order)
    return {
        "run": view.run_id,
        **window._asdict(),
        "statistic": STATISTIC,
        "compared": compared,
        "left_out": left_out,
        "differences": [asdict(difference) for difference in ranked[:limit]],
        "problems": list(problems),
    }


def _together(series: list[Difference]) -> Difference:
    """Return the difference of a metric from those of its series."""
    most = max(series, key=lambda difference: (difference.score, difference.key, difference.host))
    alike = [
        difference
        for difference in series
        if difference.how == most.how and difference.score >= _ALIKE * most.score
    ]
    return replace(most, series=len(alike), hosts=len({difference.host for difference in alike}))


def _order(difference: Difference) -> tuple[int, float, str]:
    """Probable causes first, then what was logged, what follows from it, and the rest."""
    part = difference.part
    if part == "cause" and difference.score < _MIN_CAUSE:
        part = PARTS[-1]
    return PARTS.index(part), -difference.score, difference.key


def _sampled_values(view: RunView, selection: SeriesSelection, window: Window) -> Iterator[_Values]:
    """Yield the series with samples in the range, except counters, at a resolution that bounds the memory."""
    inside = view.read_chart(selection, window.t0, window.t1, grid(window.t0, window.t1, 2), 2)
    count = len(inside.samples if inside.buckets is None else inside.buckets)
    if not count:
        return
    points = max(2 * _PARTS, min(_MAX_POINTS, _MAX_VALUES // count))
    on = grid(window.around_t0, window.around_t1, points)
    chart = view.read_chart(selection, window.around_t0, window.around_t1, on, points)
    for series in chart.samples:
        if not _is_total(series.key):
            yield _Values(
                "sampled", series.key, series.host, series.role, None, series.t, series.t, series.values
            )
    for item in chart.buckets or ():
        if not _is_total(item.key):
            t, values = item.buckets.t, bucket_values(item.key, item.buckets)
            last = t + (on.width_ms - 1)
            yield _Values("sampled", item.key, item.host, item.role, None, t, last, values)


def _is_total(key: str) -> bool:
    match = find(key)
    return match is not None and match.metric.kind == "counter"


def _logged_values(view: RunView, selection: SeriesSelection, window: Window) -> Iterator[_Values]:
    """Yield what was logged, a few names at a time."""
    matches = selection.matches_key
    names = iter(sorted(name for name in view.logged_names() if matches(name))[:_MAX_NAMES])
    while batch := list(islice(names, _NAMES_AT_ONCE)):
        for process in view.logged_columns(batch):
            if selection.host not in (None, process.host) or selection.rank not in (None, process.rank):
                continue
            for key, (_, times, values) in process.columns.items():
                near = (times >= window.around_t0) & (times <= window.around_t1)
                t = times[near]
                yield _Values("logged", key, process.host, None, process.rank, t, t, values[near])


def _difference(series: _Values, window: Window) -> Difference | None:
    """None if there are too few values on one side, or all are equal."""
    has_value = np.isfinite(series.values)
    is_inside = has_value & (series.first >= window.t0) & (series.last <= window.t1)
    is_outside = has_value & ((series.last < window.t0) | (series.first > window.t1))
    inside, outside = series.values[is_inside], series.values[is_outside]
    if len(inside) < _MIN_INSIDE or len(outside) < _MIN_OUTSIDE:
        return None
    lowest, highest = _extremes((inside, outside))
    middle = float(np.median(outside))
    within, around = _part(inside, middle), _part(outside, middle)
    spread = max(_TO_SIGMA * around.mad, _MIN_SPREAD * (highest - lowest))
    level = abs(within.median - middle) if len(inside) >= _MIN_LEVEL else 0.0
    spike = abs(within.farthest - middle) - abs(around.farthest - middle)
    how: Literal["level", "spike"] = "spike" if spike > level else "level"
    score = max(level, spike) / spread if spread > 0 else 0.0
    match = find(series.key) if series.kind == "sampled" else None
    return Difference(
        series.kind,
        series.key,
        series.host,
        series.role,
        series.rank,
        unit(series.key) if series.kind == "sampled" else "",
        series.key if match is None else match.metric.chart,
        how,
        part_of(series.kind, series.key),
        score if np.isfinite(score) else 0.0,
        within,
        around,
    )


def _extremes(parts: Iterable[Floats]) -> tuple[float, float]:
    lows, highs = zip(*((float(part.min()), float(part.max())) for part in parts), strict=True)
    return min(lows), max(highs)


def _part(values: Floats, middle: float) -> Part:
    median = float(np.median(values))
    farthest = float(values[np.abs(values - middle).argmax()])
    return Part(len(values), median, float(np.median(np.abs(values - median))), farthest)
