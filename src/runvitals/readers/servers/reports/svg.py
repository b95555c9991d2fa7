"""Drawings as SVG, which needs no script."""

from __future__ import annotations

from html import escape
from typing import Final

from runvitals.readers.servers.reports.drawings import WIDTH, Box, Dot, Drawing, Shape, Stroke

_SHOWN_NAMES: Final = 20


def svg_of(drawing: Drawing) -> str:
    """Return a drawing, and the names of its colours below it."""
    head = f'<svg viewBox="0 0 {WIDTH} {drawing.height:g}" role="img" aria-label="{escape(drawing.title)}">'
    note = f'<p class="soft">{escape(drawing.note)}</p>' if drawing.note else ""
    return head + "".join(map(_shape, drawing.shapes)) + "</svg>" + _names(drawing) + note


def _shape(shape: Shape) -> str:
    if isinstance(shape, Stroke):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        attributes = f'fill="none" stroke="{shape.color}" stroke-width="{shape.width:g}" points="{points}"'
        return f"<polyline {attributes}>{_about(shape.about)}</polyline>"
    if isinstance(shape, Box):
        size = f'x="{shape.x:.1f}" y="{shape.y:g}" width="{shape.width:.1f}" height="{shape.height:g}"'
        return f'<rect {size} fill="{shape.color}">{_about(shape.about)}</rect>'
    if isinstance(shape, Dot):
        position = f'cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="5"'
        return f'<circle {position} fill="{shape.color}">{_about(shape.about)}</circle>'
    position = f'x="{shape.x:.1f}" y="{shape.y:.1f}" text-anchor="{shape.anchor}"'
    return f"<text {position}>{escape(shape.text)}</text>"


def _about(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _names(drawing: Drawing) -> str:
    if not drawing.names:
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 10 10"><rect width="10" height="10" fill="{color}"/></svg> '
        f"{escape(name)}</li>"
        for name, color in drawing.names[:_SHOWN_NAMES]
    )
    more = len(drawing.names) - _SHOWN_NAMES
    return f'<ul class="names">{items}{f"<li>and {more} more</li>" if more > 0 else ""}</ul>'
