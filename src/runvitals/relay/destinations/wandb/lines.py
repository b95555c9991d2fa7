"""Converts a batch to the lines of W&B's files: system metrics, history rows and console lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.relay.batch import CONSOLE, Batch

_MAX_OPEN_LINE = 100_000  # characters of an unterminated console line


class SystemMetrics(NamedTuple):
    """One line of system metrics."""

    time_ms: int
    values: dict[str, float]


class WandbRow(NamedTuple):
    """One step of `run.log()`."""

    time_ms: int
    step: int
    data: dict[str, Any]


class OutputLine(NamedTuple):
    """One line of the console."""

    time_ms: int
    error: bool
    text: str


class RunUpdate:
    """The lines that a batch adds to a W&B run.

    Attributes:
        began_ms: when the run started.
        samples, rows, printed: its lines.
        config, summary: their current values; None if unchanged.
    """

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.samples: list[SystemMetrics] = []
        self.rows: list[WandbRow] = []
        self.printed: list[OutputLine] = []
        self.config: dict[str, Any] | None = None
        self.summary: dict[str, Any] | None = None


def sample(batch: Batch, every_s: float, suffix: str = "") -> list[SystemMetrics]:
    """Merge the samples of each `every_s` seconds into one.

    It has the mean of gauges (or the aggregation in the metric's definition), the last value of counters.

    Args:
        suffix: appended to the keys when several machines share a run: `/l:<host>`.
    """
    step_ms = max(1, round(every_s * 1000))
    metrics: list[SystemMetrics] = []
    window: int | None = None
    values: dict[str, list[float]] = {}
    last_ms = 0
    for moment in batch.moments():
        if moment.time_ms // step_ms != window:
            if values:
                metrics.append(SystemMetrics(last_ms, _merge(values, suffix)))
            window, values = moment.time_ms // step_ms, {}
        last_ms = moment.time_ms
        for key, value in zip(moment.keys, moment.values, strict=True):
            if not isnan(value):
                values.setdefault(key, []).append(value)
    if values:
        metrics.append(SystemMetrics(last_ms, _merge(values, suffix)))
    return metrics


def _merge(values: Mapping[str, list[float]], suffix: str) -> dict[str, float]:
    merged = {}
    for key, many in values.items():
        match = DEFINITIONS.find(key)
        how = "mean" if match is None else "last" if match.metric.kind == "counter" else match.metric.merge
        merged[key + suffix] = _MERGES[how](many)
    return merged


_MERGES: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda many: sum(many) / len(many),
    "sum": lambda many: sum(many) / len(many),  # a sum over devices; over time it is a gauge
    "max": max,
    "min": min,
    "last": lambda many: many[-1],
}


def rows(batch: Batch) -> list[WandbRow]:
    """Return the logged rows, merged by step."""
    merged: list[WandbRow] = []
    for row in batch.logs:
        step = 0 if row.step is None else int(row.step)
        if merged and merged[-1].step == step:
            merged[-1] = WandbRow(row.time_ms, step, {**merged[-1].data, **row.data})
        else:
            merged.append(WandbRow(row.time_ms, step, dict(row.data)))
    return merged


def console_lines(batch: Batch, open_lines: dict[str, str]) -> Iterator[OutputLine]:
    """Yield the complete console lines.

    Args:
        open_lines: by writer and stream, the text since the last line end. Updated.
    """
    for note in batch.notes_of(CONSOLE):
        error = note.value["stream"] == 2
        name = f"{batch.writer.name} {note.value['stream']}"
        *lines, rest = (open_lines.get(name, "") + note.value["text"]).split("\n")
        if len(rest) > _MAX_OPEN_LINE:
            lines, rest = [*lines, rest], ""
        open_lines[name] = rest
        for line in lines:
            # A progress bar rewrites its line; only the last state is kept.
            yield OutputLine(note.time_ms, error, line.rstrip("\r").rpartition("\r")[2])


def event_line(line: SystemMetrics, began_ms: int) -> str:
    """Return a line of `wandb-events.jsonl`."""
    head = {"_wandb": True, "_timestamp": line.time_ms / 1000, "_runtime": (line.time_ms - began_ms) / 1000}
    values = {f"system.{key}": value if isfinite(value) else None for key, value in line.values.items()}
    return json.dumps({**head, **values})


def history_line(row: WandbRow, began_ms: int) -> str:
    """Return a line of `wandb-history.jsonl`; NaN and infinities are written as such, as W&B does."""
    head = {"_step": row.step, "_timestamp": row.time_ms / 1000, "_runtime": (row.time_ms - began_ms) / 1000}
    return json.dumps({**row.data, **head})


def output_line(line: OutputLine) -> str:
    """Return a line of `output.log`."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(line.time_ms / 1000))
    return f"{'ERROR ' if line.error else ''}{seconds}.{line.time_ms % 1000:03d}000 {line.text}"
