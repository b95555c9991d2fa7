"""Growth that goes on for an hour or more: since when, how fast, and when the rest is used up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

import numpy as np

from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rule import duration_text
from runvitals.findings.spans import Span, find_spans
from runvitals.findings.windows import Bools, Floats, Integers, TimeWindows

BUCKET_S = 300.0
LENGTHS_S = tuple(60.0 * minutes for minutes in (20, 60, 100, 160, 240, 360, 600, 960, 1440))
"""Stretches that are looked at. The longest that grows in a line tells since when and how fast."""
LONG_S = 160 * 60.0
"""A data set that fills a cache in its first epoch grows as a leak does, but seldom for so long."""
CLOSE_S = 1800.0
LEAST_PART, LAST_PART, LAST_STRETCH = 0.4, 0.7, 0.75
"""Rise of each quarter, of the mean; of the last, of the first; of a stretch, of that before it."""
STILL = 0.25
"""Of the mean rise of a quarter: the highest value of the last is above its mean, so it still rises."""
TEETH = 2.0
"""A stretch must rise by twice what was given back at once before: else it is a tooth of a saw."""


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    """From when on growth is reported.

    Args:
        least: a stretch rises by so much or more.
        total: what can be used; None if unknown.
        level: used up to here, growth of an hour is reported; below, only of `LONG_S`.
        imminent: used up to here, growth of twenty minutes is reported if the rest lasts less than an hour.
        horizon_s: an end that is farther away is not told.
    """

    least: float
    total: float | None
    level: float
    imminent: float | None = None
    horizon_s: float = 48 * 3600.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of a column.

    Args:
        per_s: how much a second.
        level: at its end.
        left_s: until the rest is used up, from its end on; None if that is unknown.
        is_open: whether it goes on.
    """

    span: Span
    per_s: float
    level: float
    left_s: float | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One length at all times: whether the column grew in a line, by how much, and how long it is."""

    grows: Bools
    rise: Floats
    count: int
    most: Floats


def growths_of(
    column: Floats, windows: TimeWindows, limits: GrowthLimits, *, first: int = 0, has_ended: bool = False
) -> list[Growth]:
    """Return the stretches in which a column grew, as they would have been told while the run went on.

    Each moment is judged by what came before it, so what was reported stays. Gaps count as standing still.

    Args:
        first: windows before are the start, and not looked at.
        has_ended: whether the run has: growth up to its end is then told earlier.
    """
    with np.errstate(invalid="ignore"):
        inside = column[first:]
        inside = inside[~np.isnan(inside)]
    if len(inside) < 2 or float(inside.max() - inside.min()) < limits.least:
        return []
    per = max(1, round(BUCKET_S / windows.width_s))
    values = _buckets(column, per, -(-first // per))
    bucket_s = per * windows.width_s
    stretches = [
        stretch for length_s in LENGTHS_S if (stretch := _stretch(values, length_s, bucket_s, limits.least))
    ]
    if not stretches:
        return []
    grows = np.any([stretch.grows for stretch in stretches if stretch.count * bucket_s >= 3000], axis=0)
    told = np.zeros(len(values), dtype=np.int64)
    for number, stretch in enumerate(stretches):
        told[_is_reported(stretch, values, bucket_s, limits, has_ended)] = number + 1
    grows = np.asarray(grows | (told > 0), dtype=np.bool_)
    close = max(2, round(CLOSE_S / bucket_s))
    growths = []
    for group in find_spans(grows, min_windows=1, close_windows=close):
        opened = np.flatnonzero(told[group.slice])
        if len(opened):
            at = group.first + int(opened[0])
            is_open = group.last >= len(values) - close
            growths.append(_growth(values, stretches, told, at, group.last, is_open, per, windows, limits))
    return growths


def _buckets(column: Floats, per: int, first: int) -> Floats:
    """Reduce to means of so many windows; gaps have the value before. NaN before the first bucket."""
    count = len(column) // per
    parts = column[: count * per].reshape(count, per)
    present = ~np.isnan(parts)
    number = present.sum(axis=1)
    values = np.where(number > 0, np.where(present, parts, 0).sum(axis=1) / np.maximum(number, 1), np.nan)
    values[: min(first, count)] = np.nan
    positions: Integers = np.where(np.isnan(values), 0, np.arange(count))
    return np.asarray(values[np.maximum.accumulate(positions)]) if count else values


def _stretch(values: Floats, length_s: float, bucket_s: float, least: float) -> _Stretch | None:
    part = max(1, round(length_s / bucket_s / 4))
    count = 4 * part
    if count > len(values) or abs(count * bucket_s - length_s) > 0.5 * length_s:
        return None
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values))])
    means = np.full((4, len(values)), np.nan)
    for number in range(4):
        end = len(total) - (3 - number) * part
        begin = number * part
        means[number, count - 1 :] = (total[begin + part : end] - total[begin : end - part]) / part
    means[:, : int(np.isnan(values).sum()) + count - 1] = np.nan
    steps = np.diff(means, axis=0)
    rise = (means[3] - means[0]) * 4 / 3
    with np.errstate(invalid="ignore"):
        grows = (rise >= least) & (steps.min(axis=0) >= LEAST_PART * steps.mean(axis=0))
        grows &= steps[2] >= LAST_PART * steps[0]
        if part > 1:  # a quarter of one bucket is its own mean
            grows &= _trailing_max(np.nan_to_num(values), part) - means[3] >= STILL * steps.mean(axis=0)
        before = np.concatenate([np.full(count, np.nan), rise[:-count]])
        grows &= ~(rise < LAST_STRETCH * before)
        grows &= rise >= TEETH * _given_back(values, 4 * count, max(2, round(3600 / bucket_s)))
    return _Stretch(np.asarray(grows), rise, count, _trailing_max(np.nan_to_num(values), count))


def _given_back(values: Floats, memory: int, within: int) -> Floats:
    """The largest fall within an hour among the last buckets, for each moment."""
    present = np.nan_to_num(values)
    falls = _trailing_max(present, within) - present
    falls[: int(np.isnan(values).sum()) + 1] = 0.0
    return _trailing_max(falls, memory)


def _trailing_max(values: Floats, count: int) -> Floats:
    """The largest of the last `count` values, by doubling: each pass looks twice as far back."""
    result: Floats = values.copy()
    reach = 1
    while reach < count:
        shift = min(reach, count - reach)
        if shift >= len(result):
            break
        result[shift:] = np.maximum(result[shift:], result[:-shift].copy())
        reach += shift
    return result


def _is_reported(
    stretch: _Stretch, values: Floats, bucket_s: float, limits: GrowthLimits, has_ended: bool
) -> Bools:
    length_s = stretch.count * bucket_s
    if limits.total is None:
        return stretch.grows & (length_s >= LONG_S)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_s = (limits.total - stretch.most) * length_s / stretch.rise
    near = stretch.grows & (left_s <= min(limits.horizon_s, 8 * length_s))
    if length_s < 3000:
        if limits.imminent is None:
            return np.zeros_like(near)
        return near & (stretch.most >= limits.imminent) & (left_s <= 3600)
    if length_s >= LONG_S:
        return near
    told = near & (stretch.most >= limits.level)
    if has_ended and len(near):
        told[-1] |= near[-1] and stretch.rise[-1] >= 0.1 * limits.total
    return np.asarray(told)


def _growth(
    values: Floats,
    stretches: list[_Stretch],
    told: Integers,
    at: int,
    last: int,
    is_open: bool,
    per: int,
    windows: TimeWindows,
    limits: GrowthLimits,
) -> Growth:
    bucket_s = per * windows.width_s
    opened = stretches[int(told[at]) - 1]
    begin = max(at - opened.count + 1, int(np.isnan(values).sum()))
    slope = float(opened.rise[at]) / opened.count
    while begin > 0 and values[begin] - values[begin - 1] >= 0.2 * slope:
        begin -= 1
    if not is_open:
        level = values[last] - 0.02 * (values[last] - values[begin])
        last = begin + int(np.argmax(values[begin : last + 1] >= level))
    usable = [each for each in stretches if each.grows[last]] or [opened]
    latest = max(usable, key=lambda each: each.count)
    end = last if latest.grows[last] else at
    per_s = float(latest.rise[end]) / (latest.count * bucket_s)
    most = float(latest.most[-1 if is_open else end])
    left_s = None if limits.total is None else max(limits.total - most, 0.0) / max(per_s, 1e-12)
    end_window = windows.count - 1 if is_open else min((last + 1) * per, windows.count) - 1
    return Growth(
        Span(begin * per, max(end_window, begin * per)), per_s, float(values[last]), left_s, is_open
    )


def first_of_training(run: ObservedRun) -> int:
    """The window ten minutes after the first work: until then weights are loaded and caches filled."""
    if run.first_work is None:
        return 0
    return min(run.first_work + run.windows.number(600), run.windows.count - 1)


def end_text(run: ObservedRun, left_s: float) -> str:
    """Write when something ends: `in 3 h 20 min, at 14:05 UTC on 29 November`."""
    if left_s < 60:
        return "now"
    at = datetime.fromtimestamp(run.now_ms / 1000 + left_s, timezone.utc)
    return f"in {duration_text(left_s)}, at {at:%H:%M} UTC on {at.day} {at:%B}"
