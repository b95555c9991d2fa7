"""Tables, runs and small charts as HTML for notebooks, without a server or scripts. All text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from runvitals.base.terminal_text import inert

if TYPE_CHECKING:
    from runvitals.readers.journals.series import Series

_TEXT_CHARACTERS = 80
_COLUMNS = 12
_SERIES = 50
_WIDTH, _HEIGHT = 180, 36
_POINTS = 120
_COLOURS = {"running": "#2563eb", "finished": "#15803d"}
_FAILED = "#b91c1c"
_STYLE = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5"


class SmallChart(NamedTuple):
    """A line with its name and unit. `values`: in order; NaN is a gap."""

    name: str
    unit: str
    values: Sequence[float]


class ShownRun(NamedTuple):
    """What is shown of a run. `links`: text → address."""

    id: str
    name: str
    project: str
    state: str
    duration: str
    summary: Mapping[str, Any]
    charts: Sequence[SmallChart]
    links: Mapping[str, str]
    problem: str = ""


def table(columns: Mapping[str, Sequence[Any]], total: int) -> str:
    """Return the first rows of a table, and how many there are."""
    cells = {
        name: values
        for name, values in list(columns.items())[:_COLUMNS]
        if any(v is not None for v in values)
    }
    rows = zip(*cells.values(), strict=True)
    head = "".join(f"<th>{text(name)}</th>" for name in cells)
    body = "".join(f"<tr>{''.join(f'<td>{text(_cell(value))}</td>' for value in row)}</tr>" for row in rows)
    more = len(columns) - _COLUMNS
    note = f"{total:,} rows" + (f", {more} more columns" if more > 0 else "")
    return f'<div style="{_STYLE}"><table><tr>{head}</tr>{body}</table>{note}</div>'


def series_table(series: Sequence[Series]) -> str:
    """Return a row for each series, with its course: the first 50."""
    rows = "".join(
        f"<tr><td>{text(each.key)}</td><td>{text(each.host)}</td><td>{text(each.unit)}</td><td>{len(each):,}</td>"
        f"<td>{sparkline(each.values)}</td></tr>"
        for each in series[:_SERIES]
    )
    head = "".join(f"<th>{name}</th>" for name in ("key", "host", "unit", "values", ""))
    return f'<div style="{_STYLE}"><table><tr>{head}</tr>{rows}</table>{len(series):,} series</div>'


def run(shown: ShownRun) -> str:
    """Return a run: its state, small charts, summary and links."""
    colour = _COLOURS.get(shown.state, _FAILED)
    links = " · ".join(
        f'<a href="{escape(address, quote=True)}">{text(label)}</a>' for label, address in shown.links.items()
    )
    about = " · ".join(filter(None, (text(shown.project), text(shown.id), text(shown.duration), links)))
    summary = ", ".join(
        f"{text(name)} = {text(_cell(value))}" for name, value in list(shown.summary.items())[:_COLUMNS]
    )
    charts = "".join(map(chart, shown.charts))
    return (
        f'<div style="{_STYLE}"><b>{text(shown.name)}</b> '
        f'<span style="color:{colour}">● {text(shown.state)}</span><br>{about}<br>'
        f'<div style="display:flex;flex-wrap:wrap;gap:12px;margin:6px 0">{charts}</div>'
        f"{summary}{text(shown.problem)}</div>"
    )


def chart(shown: SmallChart) -> str:
    """Return a small chart: the line, its name and its newest value."""
    values = [value for value in shown.values if isfinite(value)]
    newest = f"{_cell(values[-1])} {shown.unit}".strip() if values else "no values"
    label = f'<span style="font-size:11px">{text(shown.name)}: {text(newest)}</span>'
    return f"<div>{label}<br>{sparkline(shown.values)}</div>"


def sparkline(values: Sequence[float]) -> str:
    """Return a line as SVG; many values are reduced to the lowest and highest of parts, gaps stay."""
    finite = [value for value in values if isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = (high - low) or 1.0
    points = _reduced(values)
    step = _WIDTH / max(len(points) - 1, 1)
    path, draws = [], False
    for number, value in enumerate(points):
        if isfinite(value):
            y = _HEIGHT - 2 - (value - low) / span * (_HEIGHT - 4)
            path.append(f"{'L' if draws else 'M'}{number * step:.1f} {y:.1f}")
        draws = isfinite(value)
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f'<path d="{"".join(path)}" fill="none" stroke="#0d9488" stroke-width="1.2"/></svg>'
    )


def _reduced(values: Sequence[float]) -> list[float]:
    if len(values) <= _POINTS:
        return list(values)
    size = 2 * len(values) / _POINTS
    reduced: list[float] = []
    for part in range(_POINTS // 2):
        inside = values[int(part * size) : int((part + 1) * size)]
        finite = [value for value in inside if isfinite(value)]
        reduced += [min(finite), max(finite)] if finite else [float("nan")]
    return reduced


def text(value: object) -> str:
    """Return a text escaped for HTML, cut if it is long."""
    safe_text = inert(value)
    return escape(
        safe_text if len(safe_text) <= _TEXT_CHARACTERS else f"{safe_text[:_TEXT_CHARACTERS]}…", quote=True
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value)
