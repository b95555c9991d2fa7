"""What a panel of a report shows, as lines of a chart, tables and texts: for files of any format."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runvitals.readers.servers.reports.panel_lines import Points, ReportLine, lines_of

_METRIC: Final = re.compile(r'(?:logged:|system:)?"((?:[^"\\]|\\["\\])*)"')
PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "#666666")
_USUAL_STATISTIC: Final = "last"


class PanelLine(NamedTuple):
    """A line with its name and colour. Points without a value are left out."""

    label: str
    color: str
    points: list[tuple[float, float]]


class MarkedValue(NamedTuple):
    """A value with its name and colour. `x`: where its dot is across; a bar has none."""

    label: str
    color: str
    y: float
    x: float = 0.0


class PanelTable(NamedTuple):
    """A table with a head."""

    head: list[str]
    rows: list[list[str]]


def title_of(panel: Mapping[str, Any]) -> str:
    """Return the title of a panel, or what it shows."""
    metrics = (panel.get("settings") or {}).get("metrics") or ()
    names = [query.get("name") or query["pattern"] for query in panel["queries"]]
    texts = [shown_text(text) for text in metrics if isinstance(text, str) and text.strip()] or names
    return str(panel["title"] or ", ".join(texts) or panel["kind"])


def chart_lines(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[PanelLine]:
    """Return the lines of a panel that have points, with their colours.

    Raises:
        ValueError: one of its expressions is invalid.
    """
    run_lines = lines_of(panel, answer)
    runs = {run["id"]: (position, run["color"]) for position, run in enumerate(answer["runs"])}
    by_run = len({line.run for line in run_lines}) > 1
    lines = []
    for number, line in enumerate(run_lines):
        position, color = runs.get(line.run, (number, None))
        slot = (position if by_run else number) if color is None else color
        xy = zip(line.points.x, line.points.y, strict=True)
        points = [(x, y) for x, y in xy if y is not None and math.isfinite(y)]
        lines.append(PanelLine(_label(answer, line, run_lines), PALETTE[slot % len(PALETTE)], points))
    return [line for line in lines if line.points]


def problem_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return what is wrong with a panel; empty if nothing is."""
    if answer.get("problem"):
        return str(answer["problem"])
    try:
        if has_lines(answer):
            lines_of(panel, answer)
    except ValueError as error:
        return str(error)
    return ""


def marked_values(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[MarkedValue]:
    """Return the statistic of each line of a panel of bars; of a scatter panel, with the one across."""
    statistic = (panel.get("settings") or {}).get("statistic") or _USUAL_STATISTIC
    lines = lines_of(panel, answer)
    across = lines[-1].text if panel["kind"] == "scatter" and lines else None
    xs = {(line.run, line.part): _statistic(line.points, statistic) for line in lines if line.text == across}
    drawn = chart_lines(panel, answer)
    colors = {line.label: line.color for line in drawn}
    marks = []
    for line in lines:
        y, x = (
            _statistic(line.points, statistic),
            xs.get((line.run, line.part), 0.0 if across is None else math.nan),
        )
        label = _label(answer, line, lines)
        if line.text != across and label in colors and math.isfinite(x) and math.isfinite(y):
            marks.append(MarkedValue(label, colors[label], y, x))
    return marks


def _label(answer: Mapping[str, Any], line: ReportLine, lines: Sequence[ReportLine]) -> str:
    several = not line.run or len({each.text for each in lines}) > 1
    names = (run_name(answer, line.run), line.part, shown_text(line.text) if several else "")
    return " · ".join(filter(None, names))


def shown_text(text: str) -> str:
    """Return an expression as it is shown: a metric alone without its source and quotes.

    Example:
        >>> shown_text('logged:"train/loss"'), shown_text("loss / 2")
        ('train/loss', 'loss / 2')
    """
    match = _METRIC.fullmatch(text.strip())
    return text if match is None else re.sub(r"\\(.)", r"\1", match[1])


def tables_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[PanelTable]:
    """Yield the tables of a panel: of its values, findings, differences or parameters."""
    if has_lines(answer):
        yield _of_lines(panel, answer)
    if answer.get("findings"):
        rows = [
            [run_name(answer, of_run["run"]), finding["severity"], finding["text"]]
            for of_run in answer["findings"]
            for finding in of_run["findings"]
        ]
        yield PanelTable(["Run", "Severity", "Finding"], rows)
    if (differences := answer.get("differences")) is not None:
        names = [run_name(answer, run) for run in differences["runs"]]
        rows = [[row["name"], *map(text_of, row["values"])] for row in differences["facts"]]
        rows += [[row["name"], *map(text_of, row["values"])] for row in differences["statistics"]]
        yield PanelTable(["", *names], rows)
    if (importance := answer.get("importance")) is not None:
        parameters = importance["parameters"]
        rows = [[row["name"], f"{row['share']:.0%}", text_of(row["correlation"])] for row in parameters]
        yield PanelTable(["Parameter", "Importance", "Correlation"], rows)


def texts_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the text of a panel, and the output of runs with the name of each."""
    if panel["kind"] == "text":
        yield "", str((panel.get("settings") or {}).get("text") or "")
    for console in answer.get("console") or ():
        text = "".join(piece["text"] for piece in console["pieces"])
        yield run_name(answer, console["run"]), text


def pictures_of(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the SHA-256 of media, each with what it is."""
    for record in answer.get("items") or ():
        for item in record["items"]:
            if "sha256" in item:
                step = "" if record["step"] is None else f", step {record['step']:g}"
                yield item["sha256"], f"{run_name(answer, record['run'])}: {record['key']}{step}"


def text_of(value: Any) -> str:
    """Return a value as a table shows it.

    Example:
        >>> text_of(0.1 + 0.2), text_of(None), text_of("adam")
        ('0.3', '–', 'adam')
    """
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _of_lines(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> PanelTable:
    """Return the statistic of each line: a row for each run or device, a column for each expression."""
    statistic = (panel.get("settings") or {}).get("statistic") or _USUAL_STATISTIC
    lines = lines_of(panel, answer)
    texts = list(dict.fromkeys(line.text for line in lines))
    values: dict[tuple[str, str], dict[str, float]] = {}
    for line in lines:
        values.setdefault((line.run, line.part), {})[line.text] = _statistic(line.points, statistic)
    rows = [
        [" · ".join(filter(None, (run_name(answer, run), part))), *(text_of(row.get(text)) for text in texts)]
        for (run, part), row in values.items()
    ]
    return PanelTable(["Run", *map(shown_text, texts)], rows)


def _statistic(points: Points, statistic: str) -> float:
    """Return one number of a line; NaN without values."""
    columns = {"min": points.low or points.y, "max": points.high or points.y}
    column = columns.get(statistic, points.y)
    numbers = [value for value in column if value is not None and math.isfinite(value)]
    if not numbers:
        return math.nan
    if statistic == "mean":
        return math.fsum(numbers) / len(numbers)
    return min(numbers) if statistic == "min" else max(numbers) if statistic == "max" else numbers[-1]


def has_lines(answer: Mapping[str, Any]) -> bool:
    """Return whether a panel shows lines."""
    return bool(answer.get("lines") or answer.get("devices"))


def run_name(answer: Mapping[str, Any], run_id: str) -> str:
    """Return the name of a run; its id if the answer has none."""
    return next((run["name"] for run in answer["runs"] if run["id"] == run_id), run_id)


def run_color(answer: Mapping[str, Any], run_id: str) -> str:
    """Return the colour of a run: as its author chose, or by its position."""
    slots = {run["id"]: (position, run["color"]) for position, run in enumerate(answer["runs"])}
    position, color = slots.get(run_id, (0, None))
    return PALETTE[(position if color is None else color) % len(PALETTE)]
