"""Draws a chart as lines of text: a frame with title and legend, axes with units, and lines or a heatmap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from rich.cells import cell_len

from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import BrailleCanvas, Row
from runvitals.terminal.leet.fitting_text import align_right, cut
from runvitals.terminal.leet.heatmap import heatmap, scale
from runvitals.terminal.leet.reduction import Column, columns
from runvitals.terminal.leet.series_column import SeriesColumn

COLOURS = 8
MIN_WIDTH, MIN_HEIGHT = 18, 5
_SCALE_HEIGHT = 6
"""Rows from which a heatmap has a scale below it; with fewer, its title has the unit."""
_TITLE_WIDTH = 20
"""Cells of a longer title that take precedence over the value."""
Guides = Literal["off", "dots", "lines"]
_EVERY = {"dots": 4, "lines": 1}


@dataclass(frozen=True, slots=True, eq=False)
class ChartLine:
    """One line of a chart: its name, its values over time or steps, and the number of its colour."""

    name: str
    series: SeriesColumn
    colour: int


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """The style of a chart: scale, heatmap, guides, focus, x-axis, crosshair and colours.

    Args:
        log: whether the y-axis is logarithmic.
        is_heatmap: whether each line is a row, coloured by value.
        guides: the marks at the heights with labels.
        is_focused: whether its frame is marked.
        on_time: whether x is in milliseconds, rather than steps; then missing samples interrupt a line.
        x_start: the zero of the labels of the x-axis.
        cross: the x of the crosshair, or None.
        has_colours: whether the terminal has them.
        x_name: the metric on the x-axis, "" for time and steps; safe for a terminal.
    """

    log: bool = False
    is_heatmap: bool = False
    guides: Guides = "off"
    is_focused: bool = False
    on_time: bool = True
    x_start: float = 0.0
    cross: float | None = None
    has_colours: bool = True
    x_name: str = ""

    def x_label(self, x: float) -> str:
        """Return a time since the start, or a step."""
        return axes.elapsed(x - self.x_start) if self.on_time else axes.label(x, "")


class DrawnChart(NamedTuple):
    """The rows of a chart, and where its plot begins in them, and how wide it is."""

    rows: list[Row]
    plot_left: int
    plot_width: int


def draw(
    title: str,
    unit: str,
    lines: Sequence[ChartLine],
    x_range: tuple[float, float],
    width: int,
    height: int,
    style: ChartStyle,
) -> DrawnChart:
    """Return a chart of `height` rows of `width` cells; title and names must be safe for a terminal."""
    values = axes.extent(
        range_ for line in lines if (range_ := line.series.value_range(*x_range, style.log)) is not None
    )
    inner_width, inner_height = width - 2, height - 2
    margin = 0
    if style.is_heatmap and unit and inner_height < _SCALE_HEIGHT:
        title = f"{title}, {unit}"
    if values is None:
        body = _message("no values above 0" if style.log else "no values", inner_width, inner_height)
    else:
        y_range = axes.y_range(*values, unit, style.log)
        plot = _heatmap if style.is_heatmap else _plot
        body, margin = plot(lines, unit, x_range, y_range, inner_width, inner_height, style)
    frame = "focus" if style.is_focused else "frame"
    rows = [
        _top(title, _value(lines, unit, style), width, frame),
        *([("│", frame), *row, ("│", frame)] for row in body),
        _legend(lines, unit, width, frame, style),
    ]
    return DrawnChart(rows, margin + 2, max(inner_width - margin - 1, 1))


def _plot(
    lines: Sequence[ChartLine],
    unit: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    style: ChartStyle,
) -> tuple[list[Row], int]:
    """Return the lines between their axes, and the width of the labels of the y-axis."""
    rows = height - 1
    shares = _shares(rows)
    heights = [axes.at(share, *y_range, style.log) for share in shares.values()]
    labels = dict(zip(shares, axes.labels(heights, unit), strict=True))
    margin = min(max(map(cell_len, labels.values())), max(width - 8, 0))
    canvas = BrailleCanvas(max(width - margin - 1, 1), rows)
    if style.guides != "off":
        for share in shares.values():
            canvas.guide(round(share * (canvas.lines - 1)), "guide", _EVERY[style.guides])
    for line in lines:
        dots = columns(line.series, *x_range, canvas.columns, style.on_time, style.log)
        _trace(canvas, dots, y_range, style.log, _style_of(line))
    if style.cross is not None:
        canvas.cross = _cross_column(style.cross, x_range, canvas.columns // 2)
    drawn: list[Row] = []
    for row, content in enumerate(canvas.rows()):
        text = labels.get(row, "")
        tick = "┤" if text else "│"
        drawn.append([(align_right(text, margin), "dim"), (tick, "dim"), *content])
    drawn.append([(" " * margin + "└", "dim"), (_x_labels(x_range, width - margin - 1, style), "dim")])
    return drawn, margin


def _heatmap(
    lines: Sequence[ChartLine],
    unit: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    style: ChartStyle,
) -> tuple[list[Row], int]:
    """Return a row for each line, and the width of their names."""
    names, series = [line.name for line in lines], [line.series for line in lines]
    with_scale = height >= _SCALE_HEIGHT
    rows, margin = heatmap(names, series, x_range, y_range, width, height - 1 - with_scale, style.has_colours)
    room = width - margin - 1
    rows.append([(" " * margin + "└", "dim"), (_x_labels(x_range, room, style), "dim")])
    if with_scale:
        rows.append([(" " * (margin + 1), ""), *scale(unit, y_range, room, style.has_colours)])
    return rows, margin


def _x_labels(x_range: tuple[float, float], room: int, style: ChartStyle) -> str:
    """Return the labels below a plot: its ends, and between them what x is, or the crosshair."""
    first, last = (style.x_label(x) for x in x_range)
    between = room - cell_len(first) - cell_len(last)
    if between <= 0:
        return align_right(last, room)
    name = cut(style.x_name, between - 2) if between > 4 else ""
    before = (between - cell_len(name)) // 2
    text = first + " " * before + name + " " * (between - before - cell_len(name)) + last
    if style.cross is None:
        return text
    column = _cross_column(style.cross, x_range, room)
    label = f" {style.x_label(style.cross)} "
    if column is None or cell_len(label) > room:
        return text
    start = min(max(column - cell_len(label) // 2, 0), room - cell_len(label))
    end = start + cell_len(label)
    shown_first = first if start >= cell_len(first) else ""
    shown_last = last if room - end >= cell_len(last) else ""
    return f"{shown_first:<{start}}{label}{shown_last:>{room - end}}"


def _cross_column(x: float, x_range: tuple[float, float], width: int) -> int | None:
    """Return the column of the crosshair; None if it is outside."""
    low, high = x_range
    if not low <= x <= high:
        return None
    return min(int((x - low) / max(high - low, 1e-9) * width), width - 1)


def _shares(rows: int) -> dict[int, float]:
    """Return the rows that have labels, and their positions on the axis from 0 to 1."""
    if rows < 2:
        return {0: 1.0}
    parts = 4 if rows >= 9 else 2 if rows >= 5 else 1
    return {round((rows - 1) * part / parts): 1.0 - part / parts for part in range(parts + 1)}


def _trace(
    canvas: BrailleCanvas, dots: Sequence[Column], y_range: tuple[float, float], log: bool, style: str
) -> None:
    if not dots:
        return
    top = canvas.lines - 1
    shares = _positions([column[1:5] for column in dots], *y_range, log)
    heights = [[round(min(max(share, 0.0), 1.0) * top) for share in row] for row in shares]
    previous = -1
    for index, (column, (first, _, low, high)) in enumerate(zip(dots, heights, strict=True)):
        if index and column.joins:
            canvas.line(dots[index - 1].x, previous, column.x, first, style)
        canvas.vertical(column.x, low, high, style)
        previous = heights[index][1]


def _positions(values: Sequence[Sequence[float]], low: float, high: float, log: bool) -> list[list[float]]:
    """Return the positions of rows of values in a range: 0 at its low end, 1 at its high end."""
    array = np.array(values)
    if log:
        length = math.log(high) - math.log(low)
        return ((np.log(array) - math.log(low)) / length).tolist()  # type: ignore[no-any-return]
    with np.errstate(over="ignore"):  # outside of the range
        return ((array - low) / (high - low)).tolist()  # type: ignore[no-any-return]


def _at_cross(line: ChartLine, unit: str, style: ChartStyle) -> str:
    """Return the value of a line at the crosshair, "" without one."""
    point = None if style.cross is None else line.series.nearest(style.cross)
    return "" if point is None else axes.label(point[1], unit)


def _value(lines: Sequence[ChartLine], unit: str, style: ChartStyle) -> str:
    """Return the value of a chart with one line at the crosshair, else its newest one."""
    if len(lines) != 1:
        return ""
    if style.cross is not None:
        return _at_cross(lines[0], unit, style)
    newest = lines[0].series.newest
    return "" if newest is None else axes.label(newest, unit)


def _top(title: str, value: str, width: int, frame: str) -> Row:
    value_text = f" {value} " if value else ""
    room = width - 4 - cell_len(value_text)
    if room < min(cell_len(title) + 2, _TITLE_WIDTH):  # the name of a chart matters more than its value
        value_text, room = "", width - 4
    name = f" {cut(title, room - 2)} "
    fill = "─" * (width - 3 - cell_len(name) - cell_len(value_text))
    return [("╭─", frame), (name, "title"), (fill, frame), (value_text, "value"), ("╮", frame)]


def _legend(lines: Sequence[ChartLine], unit: str, width: int, frame: str, style: ChartStyle) -> Row:
    """Return the bottom of the frame with as many names of lines, and values at the crosshair, as fit."""
    row: Row = [("╰─", frame)]
    room = width - 3
    if style.is_heatmap and style.cross is None:
        return [*row, ("─" * room, frame), ("╯", frame)]
    # A run may have several lines.
    distinct = list({(line.name, line.colour): line for line in lines}.values())
    for index, line in enumerate(distinct if len(lines) > 1 else ()):
        rest = len(distinct) - index
        more = f" +{rest}"
        value = _at_cross(line, unit, style)
        widest = 24 if index else min(24, room - 1 - (len(more) if rest > 1 else 0))
        text = f" {cut(f'{line.name} {value}' if value else line.name, widest)}"
        if cell_len(text) + (len(more) if rest > 1 else 0) > room:
            if len(more) <= room:
                row.append((more, "dim"))
                room -= len(more)
            break
        row.append((text, _style_of(line)))
        room -= cell_len(text)
    if len(lines) > 1 and room > 0:
        row.append((" ", frame))
        room -= 1
    return [*row, ("─" * room, frame), ("╯", frame)]


def _style_of(line: ChartLine) -> str:
    return f"line{line.colour % COLOURS}"


def _message(text: str, width: int, height: int) -> list[Row]:
    middle = height // 2
    return [
        [(cut(text, width).center(width) if row == middle else " " * width, "dim")] for row in range(height)
    ]
