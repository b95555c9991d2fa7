"""What a panel of a report shows, as lines of a chart, tables and texts: for files of any format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "#666666")
CHARTS: Final = ("line", "system", "percentile")
"""Kinds of panels that are drawn; of the others with lines there is a table."""
_USUAL_STATISTIC: Final = "last"


class PanelLine(NamedTuple):
    """A line with its name and colour. Points without a value are left out."""

    label: str
    color: str
    points: list[tuple[float, float]]


class PanelTable(NamedTuple):
    """A table with a head."""

    head: list[str]
    rows: list[list[str]]


def title_of(panel: Mapping[str, Any]) -> str:
    """Return the title of a panel, or what it shows."""
    names = [query.get("name") or query["pattern"] for query in panel["queries"]]
    return str(panel["title"] or ", ".join(names) or panel["kind"])


def chart_lines(answer: Mapping[str, Any]) -> list[PanelLine]:
    """Return the lines of a panel."""
    runs = {run["id"]: (place, run) for place, run in enumerate(answer["runs"])}
    several = len(answer["lines"]) > 1
    lines = []
    for metric, groups in answer["lines"].items():
        for group in groups:
            for line in group["lines"]:
                place, run = runs.get(line["run"], (0, {"name": line["run"], "color": None}))
                slot = place if run["color"] is None else run["color"]
                name = metric.partition(":")[2]
                label = f"{run['name']} · {name}" if several else run["name"]
                points = [(x, y) for x, y in zip(group["x"], line["y"], strict=True) if _is_number(y)]
                lines.append(PanelLine(label, PALETTE[slot % len(PALETTE)], points))
    return [line for line in lines if line.points]


def tables_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[PanelTable]:
    """Yield the tables of a panel: of its values, findings, differences or parameters."""
    if answer.get("lines"):
        statistic = (panel.get("settings") or {}).get("statistic") or _USUAL_STATISTIC
        yield _of_lines(answer, statistic)
    if answer.get("findings"):
        rows = [
            [_name(answer, of_run["run"]), finding["severity"], finding["text"]]
            for of_run in answer["findings"]
            for finding in of_run["findings"]
        ]
        yield PanelTable(["Run", "Severity", "Finding"], rows)
    if (differences := answer.get("differences")) is not None:
        names = [_name(answer, run) for run in differences["runs"]]
        rows = [[row["name"], *map(text_of, row["values"])] for row in differences["facts"]]
        rows += [[row["name"], *map(text_of, row["values"])] for row in differences["statistics"]]
        yield PanelTable(["", *names], rows)
    if (importance := answer.get("importance")) is not None:
        parameters = importance["parameters"]
        rows = [[row["name"], f"{row['share']:.0%}", text_of(row["correlation"])] for row in parameters]
        yield PanelTable(["Parameter", "Importance", "Correlation"], rows)


def texts_of(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the output of runs, with the name of each."""
    for console in answer.get("console") or ():
        text = "".join(piece["text"] for piece in console["pieces"])
        yield _name(answer, console["run"]), text


def pictures_of(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the SHA-256 of media, each with what it is."""
    for record in answer.get("items") or ():
        for item in record["items"]:
            if "sha256" in item:
                step = "" if record["step"] is None else f", step {record['step']:g}"
                yield item["sha256"], f"{_name(answer, record['run'])}: {record['key']}{step}"


def text_of(value: Any) -> str:
    """Return a value as a table shows it.

    Example:
        >>> text_of(0.1 + 0.2), text_of(None), text_of("adam")
        ('0.3', '–', 'adam')
    """
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _of_lines(answer: Mapping[str, Any], statistic: str) -> PanelTable:
    values: dict[str, dict[str, float]] = {}
    for metric, groups in answer["lines"].items():
        for group in groups:
            for line in group["lines"]:
                values.setdefault(line["run"], {})[metric] = _statistic(line, statistic)
    metrics = list(answer["lines"])
    head = ["Run", *(metric.partition(":")[2] for metric in metrics)]
    rows = [
        [run["name"], *(text_of(values[run["id"]].get(metric)) for metric in metrics)]
        for run in answer["runs"]
        if run["id"] in values
    ]
    return PanelTable(head, rows)


def _statistic(line: Mapping[str, Any], statistic: str) -> float:
    """Return one number of a line; NaN without values."""
    low, high = line["min"] or line["y"], line["max"] or line["y"]
    columns: dict[str, Sequence[Any]] = {"min": low, "max": high}
    numbers = [float(value) for value in columns.get(statistic, line["y"]) if _is_number(value)]
    if not numbers:
        return math.nan
    if statistic == "mean":
        return math.fsum(numbers) / len(numbers)
    return min(numbers) if statistic == "min" else max(numbers) if statistic == "max" else numbers[-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _name(answer: Mapping[str, Any], run_id: str) -> str:
    return next((run["name"] for run in answer["runs"] if run["id"] == run_id), run_id)
