"""Draws lines with matplotlib, or with plotly where that is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_HEIGHT_INCHES = 2.2
_WIDTH_INCHES = 8.0
_HEIGHT_PIXELS = 220


class PlottedLine(NamedTuple):
    """A line of a chart. `label`: of the host or process that it is from; "" if there is only one."""

    label: str
    x: Sequence[Any]
    y: Sequence[float]


def plot(charts: Mapping[str, Sequence[PlottedLine]], x_label: str) -> Any:
    """Draw a chart for each name, one below the other.

    Returns:
        The axes of matplotlib, one for each chart, or a figure of plotly.

    Raises:
        ModuleNotFoundError: neither is installed.
        LookupError: there is nothing to draw.
    """
    if not charts:
        raise LookupError("there are no numbers to plot")
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        return _with_plotly(charts, x_label)
    size = (_WIDTH_INCHES, _HEIGHT_INCHES * len(charts))
    _, grid = pyplot.subplots(len(charts), 1, sharex=True, squeeze=False, figsize=size, layout="constrained")
    axes = [row[0] for row in grid]
    for chart, (name, lines) in zip(axes, charts.items(), strict=True):
        for line in lines:
            chart.plot(line.x, line.y, label=line.label, linewidth=1)
        chart.set_title(name.replace("$", r"\$"), loc="left", fontsize="medium")
        if len(lines) > 1:
            chart.legend(fontsize="small")
    axes[-1].set_xlabel(x_label)
    return axes


def _with_plotly(charts: Mapping[str, Sequence[PlottedLine]], x_label: str) -> Any:
    try:
        from plotly.subplots import make_subplots
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plots need matplotlib or plotly: pip install matplotlib", name=error.name
        ) from error
    figure = make_subplots(rows=len(charts), cols=1, shared_xaxes=True, subplot_titles=list(charts))
    for row, lines in enumerate(charts.values(), 1):
        for line in lines:
            figure.add_scatter(x=line.x, y=line.y, name=line.label or None, row=row, col=1)
    figure.update_xaxes(title_text=x_label, row=len(charts), col=1)
    figure.update_layout(
        height=_HEIGHT_PIXELS * len(charts), showlegend=any(len(x) > 1 for x in charts.values())
    )
    return figure
