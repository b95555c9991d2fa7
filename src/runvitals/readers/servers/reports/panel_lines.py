"""The lines that a panel of a report draws: its expressions, of each run, group or device."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runvitals.readers.journals.globs import glob
from runvitals.readers.servers.reports.expressions import Expression, NamedMetric, parse_expression

_USUAL_PERCENTILES: Final = (5, 25, 50, 75, 95)
_GAP: Final = 4
"""So many usual distances of points without one are a gap, as in charts of the page."""


class Points(NamedTuple):
    """Values over x; None is a gap. `low`, `high`: extremes of buckets."""

    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None


class ReportLine(NamedTuple):
    """A line. `text`: the expression; `part`: the device or process, empty for a whole run."""

    run: str
    part: str
    text: str
    points: Points


_Parts = dict[tuple[str, str], Points]


def lines_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[ReportLine]:
    """Return the lines of a panel.

    Raises:
        ValueError: one of its expressions is invalid.
    """
    texts = _expressions(panel, answer)
    lines = [line for text in texts for line in _of_expression(text, parse_expression(text), answer)]
    if panel["kind"] != "percentile":
        return lines
    chosen = (panel.get("settings") or {}).get("percentiles")
    shares = [share for share in chosen or _USUAL_PERCENTILES if isinstance(share, (int, float))]
    return list(_percentiles([line.points for line in lines], shares))


def _expressions(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    settings = panel.get("settings") or {}
    texts = [text for text in settings.get("metrics") or () if isinstance(text, str) and text.strip()]
    if not texts or settings.get("pattern"):
        of_devices = [f"{query['source']}:{query['name']}" for query in panel["queries"] if query.get("name")]
        names = list(answer["lines"]) or of_devices
        texts = [_expression_of(name) for name in names]
    across = settings.get("across")
    if panel["kind"] == "scatter" and isinstance(across, str) and across.strip():
        texts.append(across)
    return list(dict.fromkeys(texts))


def _expression_of(metric_id: str) -> str:
    source, _, name = metric_id.partition(":")
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{source}:"{escaped}"'


def _of_expression(text: str, expression: Expression, answer: Mapping[str, Any]) -> Iterator[ReportLine]:
    parts = [_parts(metric, answer) for metric in expression.metrics]
    lead = max(parts, key=len)
    for run, part in lead:
        points = [of_metric.get((run, part)) or of_metric.get((run, "")) for of_metric in parts]
        present = [metric_points for metric_points in points if metric_points is not None]
        if len(present) == len(points):
            yield ReportLine(
                run, part, text, present[0] if expression.is_plain else combine(expression, present)
            )


def combine(expression: Expression, points: Sequence[Points]) -> Points:
    """Return the points of an expression: at each x of the metric that has the fewest."""
    grid = min(points, key=lambda metric_points: len(metric_points.x)).x
    columns = [list(_values_at(metric_points, grid)) for metric_points in points]
    return Points(grid, [expression.value(row) for row in zip(*columns, strict=True)])


def _values_at(points: Points, grid: Sequence[float]) -> Iterator[float | None]:
    """Yield the value of the last point that is not after each x; None: it is too long ago."""
    steps = [after - before for before, after in zip(points.x, points.x[1:], strict=False)]
    longest = _GAP * statistics.median(steps) if len(steps) > 1 else math.inf
    for x in grid:
        index = bisect_right(points.x, x) - 1
        yield None if index < 0 or x - points.x[index] > longest else points.y[index]


def _parts(metric: NamedMetric, answer: Mapping[str, Any]) -> _Parts:
    source = metric.source or ("logged" if metric.name in answer["names"]["logged"] else "system")
    parts: _Parts = {}
    for group in answer["lines"].get(f"{source}:{metric.name}") or ():
        for line in group["lines"]:
            parts[line["run"], ""] = Points(group["x"], line["y"], line["min"], line["max"])
    started = {run["id"]: run["started_ms"] for run in answer["runs"]}
    for run, devices in (answer.get("devices") or {}).items():
        zero = started.get(run, 0) if answer["x"] == "relative" else 0
        if source == "system" and devices["sampled"] is not None:
            parts |= {(run, part): points for part, points in _sampled(devices["sampled"], metric.name, zero)}
        if source == "logged" and devices["logged"] is not None:
            parts |= {
                (run, part): points
                for part, points in _logged(devices["logged"], metric.name, answer["x"], zero)
            }
    return parts


def _sampled(sampled: Mapping[str, Any], name: str, zero: float) -> Iterator[tuple[str, Points]]:
    matches, start = glob(name), name.partition("*")[0]
    end = name.rpartition("*")[2] if "*" in name else ""
    for group in sampled["groups"]:
        for key, values in group["series"].items():
            if key == name or matches(key):
                device = key[len(start) : len(key) - len(end)] if "*" in name else ""
                x = [time - zero for time in group["t"]]
                yield " ".join(filter(None, (group["host"], device))), Points(x, values)


def _logged(logged: Mapping[str, Any], name: str, axis: str, zero: float) -> Iterator[tuple[str, Points]]:
    for group in logged["groups"]:
        if name in group["series"]:
            rank = "" if group["rank"] is None else f"rank {group['rank']}"
            x = group["step"] if axis == "step" else [time - zero for time in group["t"]]
            yield " ".join(filter(None, (group["host"], rank))), Points(x, group["series"][name])


def _percentiles(lines: Sequence[Points], shares: Sequence[float]) -> Iterator[ReportLine]:
    columns: dict[float, list[float]] = {}
    for points in lines:
        for x, y in zip(points.x, points.y, strict=True):
            if y is not None and math.isfinite(y):
                columns.setdefault(x, []).append(y)
    xs = sorted(columns)
    for share in shares:
        yield ReportLine("", "", f"{share:g} %", Points(xs, [_percentile(columns[x], share) for x in xs]))


def _percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    position = min(max(share, 0), 100) / 100 * (len(ordered) - 1)
    low, high = ordered[math.floor(position)], ordered[math.ceil(position)]
    return low + (high - low) * (position - math.floor(position))
