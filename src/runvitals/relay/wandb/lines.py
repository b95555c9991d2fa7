"""What of a batch goes to W&B: its system metrics, rows and console lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple

from runvitals.catalog import CATALOG
from runvitals.relay.batch import CONSOLE, Batch

_MOST_OPEN_LINE = 100_000  # characters of a console line without an end


class SystemMetrics(NamedTuple):
    """One line of system metrics."""

    time_ms: int
    values: dict[str, float]


class HistoryRow(NamedTuple):
    """One step of `run.log()`."""

    time_ms: int
    step: int
    data: dict[str, Any]


class OutputLine(NamedTuple):
    """One line of the console."""

    time_ms: int
    error: bool
    text: str


def sampled(batch: Batch, every_s: float, suffix: str = "") -> list[SystemMetrics]:
    """The samples of a batch, those of `every_s` seconds as one: the mean of a level (or what its row of the
    catalogue says), the last value of a counter.

    Args:
        suffix: of the keys, where several machines share a run: `/l:<host>`.
    """
    step_ms = max(1, round(every_s * 1000))
    found: list[SystemMetrics] = []
    window: int | None = None
    values: dict[str, list[float]] = {}
    last_ms = 0
    for moment in batch.moments():
        if moment.time_ms // step_ms != window:
            if values:
                found.append(SystemMetrics(last_ms, _merged(values, suffix)))
            window, values = moment.time_ms // step_ms, {}
        last_ms = moment.time_ms
        for key, value in zip(moment.keys, moment.values, strict=True):
            if not isnan(value):
                values.setdefault(key, []).append(value)
    if values:
        found.append(SystemMetrics(last_ms, _merged(values, suffix)))
    return found


def _merged(values: Mapping[str, list[float]], suffix: str) -> dict[str, float]:
    merged = {}
    for key, many in values.items():
        match = CATALOG.find(key)
        how = "mean" if match is None else "last" if match.metric.kind == "counter" else match.metric.merge
        merged[key + suffix] = _MERGES[how](many)
    return merged


_MERGES: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda many: sum(many) / len(many),
    "sum": lambda many: sum(many) / len(many),  # of devices at one time; over time it is a level
    "max": max,
    "min": min,
    "last": lambda many: many[-1],
}


def rows(batch: Batch) -> list[HistoryRow]:
    """What was logged, rows of one step together."""
    found: list[HistoryRow] = []
    for row in batch.logs:
        step = 0 if row.step is None else int(row.step)
        if found and found[-1].step == step:
            found[-1] = HistoryRow(row.time_ms, step, {**found[-1].data, **row.data})
        else:
            found.append(HistoryRow(row.time_ms, step, dict(row.data)))
    return found


def printed(batch: Batch, open_lines: dict[str, str]) -> Iterator[OutputLine]:
    """Whole lines of the console.

    Args:
        open_lines: by writer and stream, what was printed since the last line's end. Brought up to date.
    """
    for note in batch.notes_of(CONSOLE):
        error = note.value["stream"] == 2
        name = f"{batch.writer.name} {note.value['stream']}"
        *lines, rest = (open_lines.get(name, "") + note.value["text"]).split("\n")
        if len(rest) > _MOST_OPEN_LINE:
            lines, rest = [*lines, rest], ""
        open_lines[name] = rest
        for line in lines:
            # A progress bar writes its line over and over; the last state of it stays.
            yield OutputLine(note.time_ms, error, line.rstrip("\r").rpartition("\r")[2])


def event_line(line: SystemMetrics, began_ms: int) -> str:
    """A line of `wandb-events.jsonl`."""
    head = {"_wandb": True, "_timestamp": line.time_ms / 1000, "_runtime": (line.time_ms - began_ms) / 1000}
    values = {f"system.{key}": value if isfinite(value) else None for key, value in line.values.items()}
    return json.dumps({**head, **values})


def history_line(row: HistoryRow, began_ms: int) -> str:
    """A line of `wandb-history.jsonl`; NaN and infinities stand as they are there."""
    head = {"_step": row.step, "_timestamp": row.time_ms / 1000, "_runtime": (row.time_ms - began_ms) / 1000}
    return json.dumps({**row.data, **head})


def output_line(line: OutputLine) -> str:
    """A line of `output.log`."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(line.time_ms / 1000))
    return f"{'ERROR ' if line.error else ''}{seconds}.{line.time_ms % 1000:03d}000 {line.text}"
