"""Reduces a series to the first, last, lowest and highest value of each column of dots of a chart.

A day at one sample a second takes 0.2 ms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runvitals.terminal.leet.series_column import GAP, SeriesColumn

_PER_DOT = 4
"""With more values than this in a column of dots, blocks of values are drawn."""


class Column(NamedTuple):
    """The values in one column of dots. `joins` says whether a line leads here from the previous column."""

    x: int
    first: float
    last: float
    low: float
    high: float
    joins: bool


def columns(
    series: SeriesColumn, x_low: float, x_high: float, count: int, find_gaps: bool = True, log: bool = False
) -> list[Column]:
    """Return the columns of dots that have values, from left to right. NaN interrupts the line.

    Args:
        count: columns of dots between `x_low` and `x_high`.
        find_gaps: also interrupt the line where values are missing for longer than usual.

    Example:
        >>> series = SeriesColumn([0, 1, 2, 3], [5.0, 7.0, 1.0, 2.0])
        >>> [(one.x, one.low, one.high) for one in columns(series, 0, 3, 2)]
        [(0, 5.0, 7.0), (1, 1.0, 2.0)]
    """
    elements = series.elements(x_low, x_high, _PER_DOT * count, find_gaps, log)
    if not len(elements.x):
        return []
    span = x_high - x_low
    positions = (
        np.zeros(len(elements.x)) if span <= 0 else np.minimum((elements.x - x_low) / span * count, count - 1)
    )
    at = positions.astype(np.int64)
    starts = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
    ends = np.append(starts[1:], len(at)) - 1
    low, high = np.fmin.reduceat(elements.low, starts), np.fmax.reduceat(elements.high, starts)
    result, joins = [], False
    parts = (at[starts], elements.first[starts], elements.last[ends], low, high, elements.is_cut[starts])
    for dot, start, end, bottom, top, cut in zip(*(part.tolist() for part in parts), strict=True):
        if bottom == bottom:
            starts_with_gap, ends_with_gap = start != start, end != end
            result.append(
                Column(
                    dot,
                    bottom if starts_with_gap else start,
                    bottom if ends_with_gap else end,
                    bottom,
                    top,
                    joins and not cut and not starts_with_gap,
                )
            )
            joins = not ends_with_gap
        else:
            joins = False
    return result


def means(series: SeriesColumn, x_low: float, x_high: float, count: int) -> list[float]:
    """Return the mean value in each of `count` equal parts of a range; NaN where values are missing.

    Example:
        >>> means(SeriesColumn([0, 1, 2, 3], [1.0, 3.0, 5.0, 5.0]), 0, 4, 2)
        [2.0, 5.0]
    """
    elements = series.elements(x_low, x_high, _PER_DOT * count, find_gaps=False, log=False)
    middle = elements.low / 2.0 + elements.high / 2.0
    is_finite = np.isfinite(middle)
    x, span = elements.x[is_finite], max(x_high - x_low, 1e-9)
    at = np.clip((x - x_low) / span * count, 0, count - 1).astype(np.int64)
    sums, counts = np.bincount(at, middle[is_finite], count), np.bincount(at, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        averages = sums / counts
    if len(elements.x) > 1:  # parts between two values that are not further apart than usual
        reach = GAP * float(np.median(np.diff(elements.x)))
        middles = x_low + (np.arange(count) + 0.5) * span / count
        after = np.searchsorted(elements.x, middles)
        before = np.clip(after - 1, 0, None)
        is_between = (after > 0) & (after < len(elements.x)) & is_finite[before]
        distances = elements.x[np.clip(after, None, len(elements.x) - 1)] - elements.x[before]
        is_filled = (counts == 0) & is_between & (distances <= reach)
        averages = np.where(is_filled, middle[before], averages)
    result: list[float] = averages.tolist()
    return result
