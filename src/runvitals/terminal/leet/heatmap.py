"""Draws many series as a heatmap: a row for each, or half a row, coloured by value."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.fitting_text import align_right
from runvitals.terminal.leet.reduction import means
from runvitals.terminal.leet.series_column import SeriesColumn

LEVELS = 10
_SHADES = "·░▒▓█"
_MAX_LABEL = 12


def level(value: float, low: float, high: float) -> int:
    """Return the level of a value, from 0 to `LEVELS` - 1; -1 without a value."""
    if value != value:
        return -1
    share = (value - low) / (high - low) if high > low else 0.0
    return min(int(min(max(share, 0.0), 1.0) * LEVELS), LEVELS - 1)  # a mean of huge values may be infinite


def heatmap(
    names: Sequence[str],
    series: Sequence[SeriesColumn],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    has_colours: bool,
) -> tuple[list[Row], int]:
    """Return the rows of a heatmap, and the width of the names before them.

    With more series than rows, a row shows two of them, one above the other, or the highest value of several.

    Args:
        names: the names of the series, safe for a terminal.
        y_range: the coldest and the hottest value.
        has_colours: whether the terminal has them; otherwise hotter values are denser.
    """
    margin = min(max((cell_len(name) for name in names), default=0), _MAX_LABEL, max(width - 8, 0))
    columns = max(width - margin - 1, 1)
    values = [means(column, *x_range, columns) for column in series]
    is_double = has_colours and len(values) > height
    halves = 2 * height if is_double else height
    per_row = -(-len(values) // halves)
    merged = [_highest(values[start : start + per_row]) for start in range(0, len(values), per_row)]
    levels = [[level(value, *y_range) for value in row] for row in merged]
    rows: list[Row] = []
    step = 2 if is_double else 1
    for index in range(0, len(levels), step):
        name = names[index * per_row]
        above = levels[index]
        below = levels[index + 1] if is_double and index + 1 < len(levels) else [-1] * columns
        cells = _double(above, below) if is_double else _single(above, has_colours)
        rows.append([(align_right(name, margin), "dim"), ("│", "dim"), *cells])
    blank: Row = [(" " * margin, ""), ("│", "dim"), (" " * columns, "")]
    return [*rows, *[blank] * (height - len(rows))], margin


def scale(unit: str, y_range: tuple[float, float], width: int, has_colours: bool) -> Row:
    """Return a row with the colours and their lowest and highest value; blank if it does not fit."""
    low, high = (axes.label(value, unit) for value in y_range)
    if cell_len(low) + cell_len(high) + LEVELS + 2 > width:
        return [(" " * width, "")]
    bar = [("█" if has_colours else _density(heat), f"heat{heat}") for heat in range(LEVELS)]
    used = cell_len(low) + cell_len(high) + LEVELS + 2
    return [(f"{low} ", "dim"), *bar, (f" {high}", "dim"), (" " * (width - used), "")]


def _highest(rows: Sequence[Sequence[float]]) -> list[float]:
    if len(rows) == 1:
        return list(rows[0])
    return [
        max((value for value in column if value == value), default=float("nan"))
        for column in zip(*rows, strict=True)
    ]


def _density(heat: int) -> str:
    """Return a character that is denser for hotter values: without colours it is all there is."""
    return _SHADES[heat * len(_SHADES) // LEVELS]


def _single(levels: Sequence[int], has_colours: bool) -> Row:
    cells: Row = []
    for heat in levels:
        part = (" ", "") if heat < 0 else ("█" if has_colours else _density(heat), f"heat{heat}")
        if cells and cells[-1][1] == part[1]:
            cells[-1] = (cells[-1][0] + part[0], part[1])
        else:
            cells.append(part)
    return cells


def _double(above: Sequence[int], below: Sequence[int]) -> Row:
    """Return one row for two: the upper half in the text's colour, the lower in the background's."""
    cells: Row = []
    for upper, lower in zip(above, below, strict=True):
        if upper < 0 and lower < 0:
            part = (" ", "")
        elif upper < 0:
            part = ("▄", f"heat{lower}")
        else:
            part = ("▀", f"heat{upper}" if lower < 0 else f"heat{upper}on{lower}")
        if cells and cells[-1][1] == part[1]:
            cells[-1] = (cells[-1][0] + part[0], part[1])
        else:
            cells.append(part)
    return cells
