"""Bars and dots of a panel as SVG, which need no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from runvitals.readers.servers.reports.panel_tables import MarkedValue, text_of
from runvitals.readers.servers.reports.svg_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, ticks

_BAR_HEIGHT: Final = 18
_BAR_LEFT, _BAR_RIGHT = 180, 70
_SHOWN: Final = 100
_LETTERS: Final = 26


def bars_of(marks: Sequence[MarkedValue], title: str) -> str:
    """Return bars from zero, one below the other."""
    shown = marks[:_SHOWN]
    reach = max((abs(mark.y) for mark in shown), default=0.0) or 1.0
    room = WIDTH - _BAR_LEFT - _BAR_RIGHT
    zero = _BAR_LEFT + (room / 2 if any(mark.y < 0 for mark in shown) else 0)
    scale = (WIDTH - _BAR_RIGHT - zero) / reach
    parts = [_head(title, _BAR_HEIGHT * max(1, len(shown)))]
    for place, mark in enumerate(shown):
        top, width = place * _BAR_HEIGHT, abs(mark.y) * scale
        left = zero - width if mark.y < 0 else zero
        label = mark.label if len(mark.label) <= _LETTERS else mark.label[: _LETTERS - 1] + "…"
        parts.append(
            f'<text x="{_BAR_LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="12" fill="{mark.color}">'
            f"<title>{escape(mark.label)}</title></rect>"
            f'<text x="{WIDTH - _BAR_RIGHT + 6}" y="{top + 13}">{escape(text_of(mark.y))}</text>'
        )
    return "".join(parts) + "</svg>" + _left_out(len(marks))


def dots_of(marks: Sequence[MarkedValue], title: str, across: str) -> str:
    """Return dots by two values, with the name of what is across."""
    parts = [_head(title, HEIGHT)]
    (x0, x1), (y0, y1) = _range([mark.x for mark in marks]), _range([mark.y for mark in marks])
    for value in ticks(y0, y1):
        y = _up(value, y0, y1)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for value in ticks(x0, x1):
        x = _across(value, x0, x1)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{value:.4g}</text>')
    for mark in marks:
        about = f"{mark.label}: {text_of(mark.x)}, {text_of(mark.y)}"
        parts.append(
            f'<circle cx="{_across(mark.x, x0, x1):.1f}" cy="{_up(mark.y, y0, y1):.1f}" r="5" '
            f'fill="{mark.color}"><title>{escape(about)}</title></circle>'
        )
    return "".join(parts) + f'</svg><p class="soft">Across: {escape(across)}</p>'


def _head(title: str, height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'


def _left_out(count: int) -> str:
    return f'<p class="soft">and {count - _SHOWN} more</p>' if count > _SHOWN else ""


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) / 2 or 1.0
    return low - margin, high + margin


def _across(value: float, low: float, high: float) -> float:
    return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _up(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)
