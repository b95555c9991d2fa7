"""Charts of a report as shapes, which files of each format draw alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from runvitals.readers.servers.reports.panel_fields import FieldAxis
from runvitals.readers.servers.reports.panel_tables import MarkedValue, PanelLine, text_of

WIDTH: Final = 640
_HEIGHT: Final = 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 28
_TICKS: Final = 5
_GRID: Final = "#dddddd"
_LETTERS: Final = 26
_BAR_HEIGHT: Final = 18
_BAR_LEFT, _BAR_RIGHT = 180, 70
_SHOWN_BARS, _BARS_TOGETHER = 100, 35
_AXIS_LEFT, _AXIS_TOP = 60, 24
_SHOWN_VALUES: Final = 12


class Stroke(NamedTuple):
    """A line through points. `about`: what it is, where the format can say it."""

    points: list[tuple[float, float]]
    color: str
    width: float = 1.5
    about: str = ""


class PlacedText(NamedTuple):
    """A text on its baseline. `anchor`: its start, middle or end is at x."""

    x: float
    y: float
    text: str
    anchor: str = "start"


class Box(NamedTuple):
    """A rectangle, by its left top."""

    x: float
    y: float
    width: float
    height: float
    color: str
    about: str


class Dot(NamedTuple):
    """A filled circle, by its middle."""

    x: float
    y: float
    color: str
    about: str


Shape = Stroke | PlacedText | Box | Dot


class Drawing(NamedTuple):
    """Shapes on `WIDTH` × `height`; y grows downwards.

    Attributes:
        names: what the colours stand for, below it.
        note: a line below it.
    """

    title: str
    height: float
    shapes: list[Shape]
    names: Sequence[tuple[str, str]] = ()
    note: str = ""


def chart_of(lines: Sequence[PanelLine], title: str, logarithmic: bool = False) -> Drawing | None:
    """Return a chart of lines with its axes; None without values."""
    if logarithmic:
        lines = [
            line._replace(points=[(x, math.log10(y)) for x, y in line.points if y > 0]) for line in lines
        ]
    drawn = [line for line in lines if line.points]
    if not drawn:
        return None
    plot = _Plot(
        _range([x for line in drawn for x, _ in line.points]),
        _range([y for line in drawn for _, y in line.points]),
    )
    strokes = [
        Stroke([plot.place(x, y) for x, y in line.points], line.color, about=line.label) for line in drawn
    ]
    names = [(line.label, line.color) for line in drawn]
    return Drawing(title, _HEIGHT, [*plot.grid(logarithmic), *strokes], names)


def bars_of(marks: Sequence[MarkedValue], title: str) -> list[Drawing]:
    """Return bars from zero, one below the other, in drawings that fit on a page."""
    drawn = marks[:_SHOWN_BARS]
    reach = max((abs(mark.y) for mark in drawn), default=0.0) or 1.0
    room = WIDTH - _BAR_LEFT - _BAR_RIGHT
    zero = _BAR_LEFT + (room / 2 if any(mark.y < 0 for mark in drawn) else 0)
    scale = (WIDTH - _BAR_RIGHT - zero) / reach
    drawings = []
    for first in range(0, len(drawn), _BARS_TOGETHER):
        part = drawn[first : first + _BARS_TOGETHER]
        shapes: list[Shape] = []
        for row, mark in enumerate(part):
            top, width = row * _BAR_HEIGHT, abs(mark.y) * scale
            left = zero - width if mark.y < 0 else zero
            shapes += [
                PlacedText(_BAR_LEFT - 8, top + 13, _short(mark.label), "end"),
                Box(left, top + 3, width, 12, mark.color, mark.label),
                PlacedText(WIDTH - _BAR_RIGHT + 6, top + 13, text_of(mark.y)),
            ]
        drawings.append(Drawing(title, _BAR_HEIGHT * len(part), shapes))
    if len(marks) > _SHOWN_BARS:
        drawings[-1] = drawings[-1]._replace(note=f"and {len(marks) - _SHOWN_BARS} more")
    return drawings


def dots_of(marks: Sequence[MarkedValue], title: str, across: str) -> Drawing:
    """Return dots by two values, with the name of what is across."""
    plot = _Plot(_wider([mark.x for mark in marks]), _wider([mark.y for mark in marks]))
    dots = [
        Dot(*plot.place(mark.x, mark.y), mark.color, f"{mark.label}: {text_of(mark.x)}, {text_of(mark.y)}")
        for mark in marks
    ]
    return Drawing(title, _HEIGHT, [*plot.grid(), *dots], note=f"Across: {across}")


def parallel_of(axes: Sequence[FieldAxis], runs: Sequence[tuple[str, str]], title: str) -> Drawing:
    """Return a line of each run through the values that it has on some axes.

    Args:
        runs: name and colour of each, in the order of the values of the axes.
    """
    step = (WIDTH - 2 * _AXIS_LEFT) / max(1, len(axes) - 1)
    shapes: list[Shape] = []
    heights = []
    for number, axis in enumerate(axes):
        x = _AXIS_LEFT + number * step
        levels, ticks_of_axis = _axis(axis)
        heights.append(levels)
        shapes += [
            Stroke([(x, _AXIS_TOP), (x, _HEIGHT - _BOTTOM)], _GRID, 1.0),
            PlacedText(x, _AXIS_TOP - 10, _short(axis.name), "middle"),
            *(PlacedText(x - 5, _level(at) + 4, _short(text), "end") for at, text in ticks_of_axis),
        ]
    for run, (name, color) in enumerate(runs):
        for part in _whole_parts([levels[run] for levels in heights]):
            points = [(_AXIS_LEFT + number * step, _level(at)) for number, at in part]
            shapes.append(
                Stroke(points, color, 1.2, name) if len(points) > 1 else Dot(*points[0], color, name)
            )
    return Drawing(title, _HEIGHT, shapes, runs)


class _Plot:
    """Places values between two axes."""

    def __init__(self, across: tuple[float, float], up: tuple[float, float]) -> None:
        self._across, self._up = across, up

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is."""
        (x0, x1), (y0, y1) = self._across, self._up
        right, bottom = WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        return _LEFT + (x - x0) / (x1 - x0) * (right - _LEFT), bottom - (y - y0) / (y1 - y0) * (bottom - _TOP)

    def grid(self, logarithmic: bool = False) -> Iterator[Shape]:
        """Yield lines at round values, and their texts."""
        for value in ticks(*self._up):
            _, y = self.place(self._across[0], value)
            label = f"{10**value:.4g}" if logarithmic else f"{value:.4g}"
            yield Stroke([(_LEFT, y), (WIDTH - _RIGHT, y)], _GRID, 1.0)
            yield PlacedText(_LEFT - 6, y + 4, label, "end")
        for value in ticks(*self._across):
            x, _ = self.place(value, self._up[0])
            yield PlacedText(x, _HEIGHT - 8, f"{value:.6g}", "middle")


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two values.

    Example:
        >>> ticks(0.0, 9.0)
        [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    least = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low <= abs(high) * 1e-12:
        return low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    return low, high


def _wider(values: Sequence[float]) -> tuple[float, float]:
    """Return a range in which no value is at the edge."""
    low, high = _range(values)
    margin = (high - low) * 0.05
    return low - margin, high + margin


def _axis(axis: FieldAxis) -> tuple[list[float | None], list[tuple[float, str]]]:
    """Return where each value is, from 0 to 1; and which values are written where."""
    numbers = axis.numbers
    if numbers is not None:
        low, high = _range([value for value in numbers if value is not None])
        levels = [None if value is None else (value - low) / (high - low) for value in numbers]
        return levels, [((value - low) / (high - low), f"{value:.4g}") for value in ticks(low, high)]
    texts = sorted({text_of(value) for value in axis.values if value is not None})
    where = {text: number / max(1, len(texts) - 1) for number, text in enumerate(texts)}
    labels = [(level, text) for text, level in where.items()]
    return [None if value is None else where[text_of(value)] for value in axis.values], labels[:_SHOWN_VALUES]


def _whole_parts(levels: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Yield the levels that follow each other, each with its number."""
    part: list[tuple[int, float]] = []
    for number, level in enumerate([*levels, None]):
        if level is not None:
            part.append((number, level))
        elif part:
            yield part
            part = []


def _level(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _AXIS_TOP)


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
