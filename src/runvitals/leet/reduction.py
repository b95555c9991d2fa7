"""Reduces a series to what the dots of a chart can show: the first, last, lowest and highest value of each
column of dots. A day at one sample a second takes 2 ms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_GAP = 5.0
"""A series is interrupted where its values are this many usual distances apart."""


class Column(NamedTuple):
    """The values in one column of dots. `joins` says whether a line leads here from the previous column."""

    x: int
    first: float
    last: float
    low: float
    high: float
    joins: bool


def value_range(x: Any, y: Any, x_low: float, x_high: float, log: bool) -> tuple[float, float] | None:
    """The lowest and highest finite value in a range of x; of a log scale, the positive ones."""
    x, y = np.asarray(x), np.asarray(y)
    shown = y[(x >= x_low) & (x <= x_high) & np.isfinite(y)]
    if log:
        shown = shown[shown > 0.0]
    return (float(shown.min()), float(shown.max())) if len(shown) else None


def x_range(x: Any) -> tuple[float, float] | None:
    """The lowest and highest time or step; None without any."""
    x = np.asarray(x)
    return (float(x.min()), float(x.max())) if len(x) else None


def columns(
    x: Any, y: Any, x_low: float, x_high: float, count: int, find_gaps: bool = True, log: bool = False
) -> list[Column]:
    """The columns of dots that have values, from left to right. NaN interrupts the line.

    Args:
        x: times or steps; if they are not ascending, they are sorted.
        y: as many values.
        count: columns of dots between `x_low` and `x_high`.
        find_gaps: also interrupt the line where values are missing for longer than usual.

    Example:
        >>> [(one.x, one.low, one.high) for one in columns([0, 1, 2, 3], [5.0, 7.0, 1.0, 2.0], 0, 3, 2)]
        [(0, 5.0, 7.0), (1, 1.0, 2.0)]
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if (np.diff(x) < 0).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    first, last = np.searchsorted(x, (x_low, x_high), side="left")
    last = int(np.searchsorted(x, x_high, side="right"))
    x, y = x[first:last], y[first:last]
    if not len(x):
        return []
    y = np.where(np.isfinite(y) & ((y > 0.0) | (not log)), y, np.nan)
    span = x_high - x_low
    places = np.zeros(len(x)) if span <= 0 else np.minimum((x - x_low) / span * count, count - 1)
    at = places.astype(np.int64)
    starts = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
    ends = np.append(starts[1:], len(x)) - 1
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    interrupted = np.zeros(len(starts), bool)
    steps = np.diff(x)
    if find_gaps and len(steps) > 1:
        interrupted[1:] = steps[starts[1:] - 1] > _GAP * float(np.median(steps))
    found, joins = [], False
    parts = (at[starts], y[starts], y[ends], low, high, interrupted)
    for place, one, end, bottom, top, cut in zip(*(part.tolist() for part in parts), strict=True):
        if bottom == bottom:
            starts_with_gap, ends_with_gap = one != one, end != end
            found.append(
                Column(
                    place,
                    bottom if starts_with_gap else one,
                    bottom if ends_with_gap else end,
                    bottom,
                    top,
                    joins and not cut and not starts_with_gap,
                )
            )
            joins = not ends_with_gap
        else:
            joins = False
    return found
