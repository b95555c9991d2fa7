"""How a run is going, in a few numbers: its goal metric, its progress, its throughput, its devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from runvitals.base.buckets import Floats, grid
from runvitals.model.defined_metrics import definition_of
from runvitals.model.run import Run
from runvitals.model.run_state import State
from runvitals.readers.journals.key_filter import find
from runvitals.server.charts.headline_names import (
    Direction,
    choose_goal,
    choose_throughput,
    total_of,
)
from runvitals.server.charts.series import bucket_values
from runvitals.server.library.run_library import LoggedColumn, RunView, SeriesSelection

_DEVICES: Final = (
    ("GPU", "gpu.{i}.gpu"),
    ("TPU", "tpu.{i}.dutyCycle"),
    ("Neuron core", "trn.{core}.neuroncore_utilization"),
    ("IPU", "ipu.{device_id}.ipu utilisation (%)"),
)
_BUCKETS: Final = 512
IDLE_BELOW: Final = 5.0
"""Percent of use: below it, a device counts as idle."""
_LINE_POINTS: Final = 60
_RECENT_SHARE, _RECENT_MS = 0.1, 60_000.0
_EPOCH: Final = "epoch"
_PLACEHOLDER = re.compile(r"\{\w+\}")


def headline(view: RunView, now_ms: int) -> dict[str, Any]:
    """Return the fields of `models.Headline`."""
    run = view.run(now_ms)
    problems = view.note_problems()
    names = view.logged_names()
    defined = run.defined_metrics
    visible_names = [name for name in names if not defined or not definition_of(defined, name).get("hidden")]
    goal = choose_goal(visible_names, defined)
    throughput = choose_throughput(visible_names)
    # Steps are also those of what is logged at each step, which the goal often is not.
    often = min((name for name in names if "loss" in name.lower()), key=len, default=None)
    charted = [goal[0] if goal else None, throughput, often, _EPOCH if _EPOCH in names else None]
    columns = _columns(view, [name for name in charted if name] or sorted(names)[:1])
    rows = _progress_rows(list(columns.values()))
    end_ms = now_ms if run.state == "running" else run.started_ms + run.duration_ms
    return {
        "run": view.run_id,
        "logged": bool(names),
        "goal": None if goal is None else _goal(goal[0], goal[1], columns.get(goal[0], [])),
        "progress": _progress(run, rows, columns.get(_EPOCH, []), run.state, end_ms),
        "throughput": None if throughput is None else _newest(throughput, columns.get(throughput, [])),
        "devices": _devices(view, run.started_ms, end_ms),
        "problems": list(problems),
    }


def _columns(view: RunView, names: Sequence[str]) -> dict[str, list[LoggedColumn]]:
    """By name: what each rank logged, before a restart and after it, of finite values, in order of time."""
    by_rank: dict[tuple[str, int | None], list[LoggedColumn]] = {}
    if not names:
        return {}
    for process in view.logged_columns(dict.fromkeys(names)):
        for name, column in process.columns.items():
            by_rank.setdefault((name, process.rank), []).append(column)
    columns_by_name: dict[str, list[LoggedColumn]] = {}
    for (name, _), columns in by_rank.items():
        steps, times, values = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        order = np.argsort(times, kind="stable")
        order = order[np.isfinite(values[order])]
        if len(order):
            columns_by_name.setdefault(name, []).append((steps[order], times[order], values[order]))
    return columns_by_name


def _goal(name: str, direction: Direction | None, columns: Sequence[LoggedColumn]) -> dict[str, Any] | None:
    if not columns:
        return None
    steps, times, values = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    newest = int(np.argmax(times))
    best = None if direction is None else int(values.argmin() if direction == "minimize" else values.argmax())
    longest = max(columns, key=lambda column: len(column[2]))
    return {
        "name": name,
        "goal": direction,
        "last": float(values[newest]),
        "best": None if best is None else float(values[best]),
        "best_step": None if best is None else float(steps[best]),
        "line": _thinned(longest[2]),
    }


def _thinned(values: Floats) -> list[float]:
    """Return some of many values, of each part the one that is farthest from the mean of its part."""
    if len(values) <= _LINE_POINTS:
        return [float(value) for value in values]
    parts = np.array_split(values, _LINE_POINTS)
    return [float(part[np.abs(part - part.mean()).argmax()]) for part in parts]


def _newest(name: str, columns: Sequence[LoggedColumn]) -> dict[str, Any] | None:
    if not columns:
        return None
    _, _, values = max(columns, key=lambda column: column[1][-1])
    return {"name": name, "last": float(values[-1]), "median": float(np.median(values))}


def _progress_rows(columns: Sequence[Sequence[LoggedColumn]]) -> LoggedColumn | None:
    """Return the column with the most values: of the rank and name that logged most often."""
    return max(
        (column for of_name in columns for column in of_name), key=lambda column: len(column[0]), default=None
    )


def _progress(
    run: Run, rows: LoggedColumn | None, epochs: Sequence[LoggedColumn], state: State, end_ms: int
) -> dict[str, Any] | None:
    """Return how far the run is: in steps if the configuration says how many, else in epochs."""
    if rows is None:
        return None
    steps, times, _ = rows
    step = float(steps[-1])
    per_second = _rate(times, steps, state, end_ms)
    total = total_of(run.config, "step")
    unit: Literal["step", "epoch"] = "step"
    value, rate = step, per_second
    if total is None and epochs and (total := total_of(run.config, "epoch")) is not None:
        _, at, reached = max(epochs, key=lambda column: column[1][-1])
        unit, value, rate = "epoch", float(reached[-1]), _rate(at, reached, state, end_ms)
    remaining = None if total is None else max(0.0, total - value)
    eta_ms = (
        round(remaining / rate * 1000.0) if remaining is not None and rate and state == "running" else None
    )
    return {
        "unit": unit,
        "value": value,
        "total": total,
        "step": step,
        "steps_per_second": per_second,
        "eta_ms": eta_ms,
    }


def _rate(times: Floats, values: Floats, state: State, end_ms: int) -> float | None:
    """Return the growth per second: lately of a run that is running, otherwise of all of it.

    What was done a second time after a restart counts, because it took time too.
    """
    if state == "running":
        since = min(times[-1] - _RECENT_MS, end_ms - _RECENT_SHARE * (end_ms - times[0]))
        first = min(int(np.searchsorted(times, since)), max(0, len(times) - 2))
        times, values = times[first:], values[first:]
    growth = np.diff(values)
    took_s = (float(times[-1]) - float(times[0])) / 1000.0
    grown = float(growth[growth > 0].sum())
    return grown / took_s if took_s > 0 and grown > 0 else None


def _is_of(key: str, template: str) -> bool:
    match = find(key)
    return match is not None and match.metric.key == template


def _devices(view: RunView, started_ms: int, end_ms: int) -> dict[str, Any] | None:
    """Return the mean use of the run's devices, and the share of their time in which they were idle."""
    selection = SeriesSelection(tuple(_PLACEHOLDER.sub("*", template) for _, template in _DEVICES))
    series = view.read_buckets(selection, grid(started_ms, max(started_ms, end_ms), _BUCKETS))
    for kind, template in _DEVICES:
        of_kind = [item for item in series if _is_of(item.key, template) and item.buckets.n.any()]
        if not of_kind:
            continue
        n = np.concatenate([item.buckets.n for item in of_kind])
        mean = np.concatenate([bucket_values(item.key, item.buckets) for item in of_kind])
        n, mean = n[n > 0], mean[n > 0]
        return {
            "kind": kind,
            "count": len({(item.host, item.key) for item in of_kind}),
            "mean": float(np.average(mean, weights=n)),
            "idle": float(n[mean < IDLE_BELOW].sum() / n.sum() * 100.0),
        }
    return None
