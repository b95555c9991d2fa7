"""Draws charts as SVG, with the standard library only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import floor, isfinite, log10
from typing import NamedTuple

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 48
_COLORS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#db2777", "#65a30d")
_TEXT_CHARACTERS = 60
_MAX_POINTS = 5000
"""Points that a series draws; of more, evenly spaced ones. The table has all."""
_MAX_MARKS = 60
"""Names along an axis, or rows and columns of a matrix, that have a text."""
_MAX_CELLS = 250
"""Rows and columns of a matrix that are drawn."""
_LEGEND = 8


class PlottedSeries(NamedTuple):
    """A line or a cloud of points: its name, and as many x as y values; only finite ones are drawn."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


def lines(
    series: Sequence[PlottedSeries], title: str, x_title: str, y_title: str, points: bool = False
) -> str:
    """Return an SVG of lines, or of points.

    Example:
        >>> lines([PlottedSeries("a", [0, 1], [2, 3])], "title", "x", "y")[:4]
        '<svg'
    """
    drawn = [PlottedSeries(plotted.name, *_finite(plotted)) for plotted in series]
    left, right, x_marks = _scale([x for plotted in drawn for x in plotted.xs])
    low, high, y_marks = _scale([y for plotted in drawn for y in plotted.ys])
    across, up = _scales(left, right, low, high)
    parts = _axes(across, up, x_marks, y_marks)
    for number, plotted in enumerate(drawn):
        color = _COLORS[number % len(_COLORS)]
        coordinates = [f"{across(x):.1f},{up(y):.1f}" for x, y in zip(plotted.xs, plotted.ys, strict=True)]
        if points:
            dots = "".join(f"M{point}h0" for point in coordinates)
            parts.append(f'<path d="{dots}" stroke="{color}" stroke-width="5" stroke-linecap="round"/>')
        else:
            parts.append(
                f'<polyline points="{" ".join(coordinates)}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
    return _page(parts, title, x_title, y_title, [plotted.name for plotted in series])


def bars(
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    title: str,
    x_title: str,
    y_title: str,
) -> str:
    """Return an SVG of bars: for each name, one bar of each series."""
    values = [value if isfinite(value) else 0.0 for _, column in series for value in column]
    low, high, y_marks = _scale([0.0, *values])
    across, up = _scales(0, max(len(names), 1), low, high)
    shows_names = len(names) <= _MAX_MARKS
    marks = [(index + 0.5, name) for index, name in enumerate(names) if name and shows_names]
    parts = _axes(across, up, marks, y_marks)
    share = 0.8 / max(len(series), 1)
    for number, (_, column) in enumerate(series):
        for index, value in enumerate(column):
            height = value if isfinite(value) else 0.0
            x, top, bottom = across(index + 0.1 + number * share), up(max(height, 0)), up(min(height, 0))
            width = max(across(share) - across(0), 0.5)
            color = _COLORS[number % len(_COLORS)]
            parts.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}"'
                f' fill="{color}"/>'
            )
    return _page(parts, title, x_title, y_title, [name for name, _ in series])


def matrix(
    rows: Sequence[Sequence[float]], names: Sequence[str], title: str, x_title: str, y_title: str
) -> str:
    """Return an SVG of a square matrix: the higher a number, the darker its cell. The first row is on top."""
    size = min(len(rows), _MAX_CELLS)
    most = max((value for row in rows for value in row), default=0) or 1
    across, up = _scales(0, max(size, 1), max(size, 1), 0)
    marks = [(i + 0.5, name) for i, name in enumerate(names[:size])] if size <= _MAX_MARKS else []
    parts = _axes(across, up, marks, marks)
    width, height = across(1) - across(0), up(1) - up(0)
    for y in range(size):
        for x in range(size):
            share = rows[y][x] / most
            parts.append(
                f'<rect x="{across(x):.1f}" y="{up(y):.1f}" width="{width:.1f}" height="{height:.1f}"'
                f' fill="{_COLORS[0]}" fill-opacity="{share:.3f}"/>'
            )
            if size <= 20:
                color = "#fff" if share > 0.5 else "#111"
                parts.append(_text(across(x + 0.5), up(y + 0.5) + 4, f"{rows[y][x]:g}", fill=color))
    return _page(parts, title, x_title, y_title, [])


def _finite(plotted: PlottedSeries) -> tuple[list[float], list[float]]:
    pairs = [(x, y) for x, y in zip(plotted.xs, plotted.ys, strict=False) if isfinite(x) and isfinite(y)]
    if len(pairs) > _MAX_POINTS:
        pairs = [pairs[i * (len(pairs) - 1) // (_MAX_POINTS - 1)] for i in range(_MAX_POINTS)]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _scale(values: Sequence[float]) -> tuple[float, float, list[tuple[float, str]]]:
    """Return the least and the highest value of an axis, and its marks."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)
    if not isfinite(high - low):  # the difference of two numbers near the largest
        return low, high, []
    step = 10.0 ** floor(log10((high - low) / 5))
    step *= next(times for times in (1, 2, 5, 10) if (high - low) / (step * times) <= 6)
    first, count = floor(low / step), floor((high - low) / step) + 2
    marks = [(first + i) * step for i in range(count)]
    return low, high, [(mark, f"{mark:.6g}") for mark in marks if low <= mark <= high]


def _scales(
    left: float, right: float, low: float, high: float
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Return functions that place an x and a y value in the picture."""
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(x: float) -> float:
        return _LEFT + width * (x / (right - left) - left / (right - left))

    def up(y: float) -> float:
        return _HEIGHT - _BOTTOM - height * (y / (high - low) - low / (high - low))

    return across, up


def _axes(
    across: Callable[[float], float],
    up: Callable[[float], float],
    x_marks: Sequence[tuple[float, str]],
    y_marks: Sequence[tuple[float, str]],
) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#888"/>']
    each = (right - _LEFT) / max(len(x_marks), 1)
    for value, name in x_marks:
        short = name[: max(int(each / 7), 2)]
        parts.append(_text(across(value), bottom + 16, short))
    for value, name in y_marks:
        parts.append(f'<path d="M{_LEFT} {up(value):.1f}H{right}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, up(value) + 4, name[:9], anchor="end"))
    return parts


def _page(parts: list[str], title: str, x_title: str, y_title: str, legend: Sequence[str]) -> str:
    texts = [
        _text(_WIDTH / 2, 18, title, weight="bold"),
        _text(_WIDTH / 2, _HEIGHT - 10, x_title),
        _text(14, _HEIGHT / 2, y_title, turn=True),
    ]
    if len(legend) > 1:
        each = (_WIDTH - _LEFT - _RIGHT) / min(len(legend), _LEGEND)
        for number, name in enumerate(legend[:_LEGEND]):
            more = f" and {len(legend) - _LEGEND} more" if number == _LEGEND - 1 < len(legend) - 1 else ""
            short_name = name[: max(int(each / 6.5), 2)] + more
            color = _COLORS[number % len(_COLORS)]
            texts.append(_text(_LEFT + number * each, 34, short_name, anchor="start", fill=color))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}{"".join(texts)}</svg>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "middle",
    fill: str = "#333",
    weight: str = "normal",
    turn: bool = False,
) -> str:
    escaped = escape("".join(c for c in text if c.isprintable())[:_TEXT_CHARACTERS])
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"{turned}>'
        f"{escaped}</text>"
    )
