"""Draws one chart as lines of text: a frame with title and legend, axes with units, and the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.cells import cell_len, set_cell_size

from runvitals.leet import axes
from runvitals.leet.braille import BrailleCanvas, Row
from runvitals.leet.reduction import Column, columns, value_range

COLOURS = 8
MIN_WIDTH, MIN_HEIGHT = 18, 5
Guides = Literal["off", "dots", "lines"]
_EVERY = {"dots": 4, "lines": 1}


@dataclass(frozen=True, slots=True, eq=False)
class ChartLine:
    """One line of a chart: its name, its values over time or steps, and the number of its colour."""

    name: str
    x: Any
    y: Any
    colour: int


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """How a chart is drawn.

    Args:
        log: whether the y-axis is logarithmic.
        guides: what marks the heights that have labels.
        is_focused: whether its frame is marked.
        on_time: whether x is in milliseconds, rather than steps; then missing samples interrupt a line.
        x_start: what the labels of the x-axis count from.
    """

    log: bool = False
    guides: Guides = "off"
    is_focused: bool = False
    on_time: bool = True
    x_start: float = 0.0


def draw(
    title: str,
    unit: str,
    lines: Sequence[ChartLine],
    x_range: tuple[float, float],
    width: int,
    height: int,
    style: ChartStyle,
) -> list[Row]:
    """The rows of a chart, each `width` cells wide. Title and names must be safe for a terminal."""
    found = axes.extent(
        range_ for line in lines if (range_ := value_range(line.x, line.y, *x_range, style.log)) is not None
    )
    inner_width, inner_height = width - 2, height - 2
    if found is None:
        body = _message("no values above 0" if style.log else "no values", inner_width, inner_height)
    else:
        low, high = axes.y_range(*found, unit, style.log)
        body = _plot(lines, unit, x_range, (low, high), inner_width, inner_height, style)
    frame = "focus" if style.is_focused else "frame"
    return [
        _top(title, _newest(lines, unit), width, frame),
        *([("│", frame), *row, ("│", frame)] for row in body),
        _legend(lines, width, frame),
    ]


def _plot(
    lines: Sequence[ChartLine],
    unit: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    style: ChartStyle,
) -> list[Row]:
    """The lines between their axes."""
    rows = height - 1
    shares = _shares(rows)
    labels = {row: axes.label(axes.at(share, *y_range, style.log), unit) for row, share in shares.items()}
    margin = min(max(map(cell_len, labels.values())), max(width - 8, 0))
    canvas = BrailleCanvas(max(width - margin - 1, 1), rows)
    if style.guides != "off":
        for share in shares.values():
            canvas.guide(round(share * (canvas.lines - 1)), "guide", _EVERY[style.guides])
    for line in lines:
        found = columns(line.x, line.y, *x_range, canvas.columns, style.on_time, style.log)
        _trace(canvas, found, y_range, style.log, _style_of(line))
    drawn: list[Row] = []
    for row, content in enumerate(canvas.rows()):
        text = labels.get(row, "")
        tick = "┤" if text else "│"
        drawn.append([(_right(text, margin), "dim"), (tick, "dim"), *content])
    ends = [axes.elapsed(x - style.x_start) if style.on_time else axes.label(x, "") for x in x_range]
    room = width - margin - 1
    left, right = ends[0], ends[1]
    between = room - cell_len(left) - cell_len(right)
    x_labels = left + " " * between + right if between > 0 else _right(right, room)
    drawn.append([(" " * margin + "└", "dim"), (x_labels, "dim")])
    return drawn


def _shares(rows: int) -> dict[int, float]:
    """The rows that have labels, and where on the axis they are: the ends, and those between if they fit."""
    if rows < 2:
        return {0: 1.0}
    parts = 4 if rows >= 9 else 2 if rows >= 5 else 1
    return {round((rows - 1) * part / parts): 1.0 - part / parts for part in range(parts + 1)}


def _trace(
    canvas: BrailleCanvas, found: Sequence[Column], y_range: tuple[float, float], log: bool, style: str
) -> None:
    def height(value: float) -> int:
        share = axes.position(value, *y_range, log)
        return round(min(max(share, 0.0), 1.0) * (canvas.lines - 1))

    previous: Column | None = None
    for column in found:
        if previous is not None and column.joins:
            canvas.line(previous.x, height(previous.last), column.x, height(column.first), style)
        canvas.line(column.x, height(column.low), column.x, height(column.high), style)
        previous = column


def _newest(lines: Sequence[ChartLine], unit: str) -> str:
    """The newest value of a chart with one line."""
    if len(lines) != 1 or not len(lines[0].y):
        return ""
    return axes.label(float(lines[0].y[-1]), unit)


def _top(title: str, newest: str, width: int, frame: str) -> Row:
    right = f" {newest} " if newest else ""
    room = width - 4 - cell_len(right)
    if room < 8:
        right, room = "", width - 4
    name = f" {_cut(title, room - 2)} "
    fill = "─" * (width - 3 - cell_len(name) - cell_len(right))
    return [("╭─", frame), (name, "title"), (fill, frame), (right, "value"), ("╮", frame)]


def _legend(lines: Sequence[ChartLine], width: int, frame: str) -> Row:
    """The bottom of the frame with the names of the lines, as many as fit."""
    row: Row = [("╰─", frame)]
    room = width - 3
    named = list({(line.name, line.colour): line for line in lines}.values())  # a run may have several lines
    for index, line in enumerate(named if len(lines) > 1 else ()):
        rest = len(named) - index
        more = f" +{rest}"
        widest = 24 if index else min(24, room - 1 - (len(more) if rest > 1 else 0))
        text = f" {_cut(line.name, widest)}"
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
        [(_cut(text, width).center(width) if row == middle else " " * width, "dim")] for row in range(height)
    ]


def _right(text: str, width: int) -> str:
    cut = _cut(text, width)
    return " " * (width - cell_len(cut)) + cut


def _cut(text: str, width: int) -> str:
    """The text, cut at a width in cells with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
