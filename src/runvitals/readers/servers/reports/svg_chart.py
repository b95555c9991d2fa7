"""A chart of lines as SVG, which needs no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from runvitals.readers.servers.reports.panel_tables import PanelLine

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 28
_TICKS: Final = 5
_SHOWN_LABELS: Final = 20


def svg_of(lines: Sequence[PanelLine], title: str, logarithmic: bool = False) -> str:
    """Return a chart of lines with its axes and names."""
    scaled = scale(lines, logarithmic)
    if scaled is None:
        return "<p>No values.</p>"
    (x0, x1), (y0, y1), shown = scaled
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
    ]
    for value in ticks(y0, y1):
        y = _place(value, y0, y1, HEIGHT - BOTTOM, TOP)
        label = f"{10**value:.4g}" if logarithmic else f"{value:.4g}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for value in ticks(x0, x1):
        x = _place(value, x0, x1, LEFT, WIDTH - RIGHT)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{value:.6g}</text>')
    for line in shown:
        points = " ".join(
            f"{_place(x, x0, x1, LEFT, WIDTH - RIGHT):.1f},{_place(y, y0, y1, HEIGHT - BOTTOM, TOP):.1f}"
            for x, y in line.points
        )
        about = f"<title>{escape(line.label)}</title>"
        parts.append(
            f'<polyline fill="none" stroke="{line.color}" stroke-width="1.5" points="{points}">{about}'
            "</polyline>"
        )
    return "".join(parts) + "</svg>" + _names(shown)


def scale(
    lines: Sequence[PanelLine], logarithmic: bool
) -> tuple[tuple[float, float], tuple[float, float], list[PanelLine]] | None:
    """Return the ranges of x and y, and the lines in it; None without points."""
    if logarithmic:
        lines = [
            line._replace(points=[(x, math.log10(y)) for x, y in line.points if y > 0]) for line in lines
        ]
    shown = [line for line in lines if line.points]
    xs = [x for line in shown for x, _ in line.points]
    ys = [y for line in shown for _, y in line.points]
    if not xs:
        return None
    return _range(xs), _range(ys), shown


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


def _place(value: float, low: float, high: float, first: float, last: float) -> float:
    return first + (value - low) / (high - low) * (last - first)


def _names(lines: Sequence[PanelLine]) -> str:
    named = "".join(
        f'<li><svg viewBox="0 0 10 10"><rect width="10" height="10" fill="{line.color}"/></svg> '
        f"{escape(line.label)}</li>"
        for line in lines[:_SHOWN_LABELS]
    )
    more = f"<li>and {len(lines) - _SHOWN_LABELS} more</li>" if len(lines) > _SHOWN_LABELS else ""
    return f'<ul class="names">{named}{more}</ul>'
