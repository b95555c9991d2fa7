"""Draws a logged metric over another one, as `define_metric` chose it."""

from __future__ import annotations

import numpy as np

from runvitals.terminal.leet.series_column import SeriesColumn


def over_metric(values: SeriesColumn, axis: SeriesColumn) -> SeriesColumn:
    """Return the values over those of another metric that the same process logged at the same steps.

    Values at other steps are left out, as on the page.

    Args:
        values, axis: of the two metrics, over steps.

    Example:
        >>> loss, epoch = SeriesColumn([10, 15, 20], [3.0, 9.0, 1.0]), SeriesColumn([10, 20], [1.0, 2.0])
        >>> over_metric(loss, epoch).x, over_metric(loss, epoch).y
        (array([1., 2.]), array([3., 1.]))
    """
    if not (values.count and axis.count):
        return SeriesColumn()
    indexes = np.searchsorted(axis.x, values.x, side="right") - 1  # of one step the last
    x = axis.y[np.maximum(indexes, 0)]
    is_known = (indexes >= 0) & (axis.x[np.maximum(indexes, 0)] == values.x) & np.isfinite(x)
    return SeriesColumn(x[is_known], values.y[is_known])
