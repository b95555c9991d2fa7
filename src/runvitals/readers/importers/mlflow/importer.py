"""Imports the runs of an MLflow store as runs of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any

from runvitals.model.metrics.mlflow import PREFIX, from_mlflow
from runvitals.model.run_state import State
from runvitals.readers.importers.mlflow.run import MlflowMetric, MlflowStore, MlflowStoreRun
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, run_id_of

_STATES: dict[str, State] = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "stopped"}
_OWN_TAGS = "mlflow."
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = {"True": True, "False": False, "None": None}
_DEFAULT_INTERVAL_S = 10.0


def import_mlflow(
    store: MlflowStore, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the runs of a store.

    Runs that exist already are left alone, so an import that was interrupted goes on where it ended.

    Args:
        store: where MLflow keeps them.
        directory: the data folder.
        project: replaces the name of the experiment.
        run_id: import only this run.
        team: see `RunDescription`.

    Yields:
        The same report after each run.
    """
    report = ImportReport()
    with closing(store):
        for run in store.runs():
            report.total = store.total
            if run_id is not None and run.id != run_id:
                continue
            write = partial(_import_run, store, run, directory, project or run.experiment, team, report)
            report.attempt(run_id_of(run.id), directory, write)
            yield report
        report.failed.update(store.damaged)
        report.leave_out("deleted runs", store.deleted)
        report.leave_out("values that are not numbers", store.unreadable)
        yield report


def _import_run(
    store: MlflowStore, run: MlflowStoreRun, directory: str, project: str, team: str, report: ImportReport
) -> None:
    metrics = sorted(store.metrics(run), key=lambda metric: (metric.time_ms, metric.step))
    system = [metric for metric in metrics if _is_system(metric.key)]
    times = sorted({metric.time_ms for metric in system})
    gaps = [(after - before) / 1000 for before, after in pairwise(times)]
    started_ms = run.started_ms or (metrics[0].time_ms if metrics else 0)
    about = _description(run, project, started_ms)
    about.team = team
    with RunDraft(directory, about, median(gaps) if gaps else _DEFAULT_INTERVAL_S) as draft:
        last_ms = started_ms
        for time_ms, step, data in rows(metric for metric in metrics if not _is_system(metric.key)):
            draft.row(time_ms, step, data)
            last_ms = max(last_ms, time_ms)
        for time_ms, host, values in samples(system):
            draft.sample(time_ms, values, host)
            last_ms = max(last_ms, time_ms)
        _copy_artifacts(store, run, draft, run.ended_ms or last_ms, report)
        draft.end(_STATES.get(run.status), run.ended_ms or last_ms)
        draft.complete()
    unfinished = f"; its status is {run.status}: what it logs later is not imported"
    report.add(about.id, project, draft, "" if run.status in _STATES else unfinished)


def _copy_artifacts(
    store: MlflowStore, run: MlflowStoreRun, draft: RunDraft, time_ms: int, report: ImportReport
) -> None:
    try:
        for artifact in store.artifacts(run):
            path = artifact.path()
            if path is None:
                report.leave_out("artifacts that could not be downloaded")
            else:
                draft.saved_file(time_ms, artifact.name, path)
    except ValueError as error:
        report.leave_out(f"runs without their files: {error}")


def _description(run: MlflowStoreRun, project: str, started_ms: int) -> RunDescription:
    tags = run.tags
    own = [f"{key}={value}"[:256] for key, value in tags.items() if not key.startswith(_OWN_TAGS)]
    source = tags.get("mlflow.source.name")
    about: dict[str, Any] = {"command": [source]} if source else {}
    if tags.get("mlflow.user"):
        about["user"] = tags["mlflow.user"]
    return RunDescription(
        id=run_id_of(run.id),
        project=project,
        source="mlflow",
        started_ms=started_ms,
        name=run.name,
        group=tags.get("mlflow.parentRunId", ""),
        notes=tags.get("mlflow.note.content", ""),
        tags=own,
        config={key: parameter(text) for key, text in run.params.items()},
        about=about,
    )


def parameter(text: str) -> Any:
    """Return a parameter, which MLflow keeps as a text: numbers, booleans and None as what they were.

    Example:
        >>> parameter("0.1"), parameter("True"), parameter("1e-3x")
        (0.1, True, '1e-3x')
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) is None:
        return text
    digits = text.lstrip("+-")
    if digits.isdigit():
        return int(text) if len(digits) < 19 and (digits == "0" or digits[0] != "0") else text
    number = float(text)
    return number if isfinite(number) else text


def rows(metrics: Iterable[MlflowMetric]) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Time, step and values of the rows: consecutive values of one step, until a name repeats."""
    row: dict[str, float] = {}
    time_ms = step = 0
    for metric in metrics:
        if row and (metric.step != step or metric.key in row):
            yield time_ms, step, row
            row = {}
        if not row:
            time_ms, step = metric.time_ms, metric.step
        row[metric.key] = _restore_infinity(metric.value)
    if row:
        yield time_ms, step, row


def samples(metrics: Iterable[MlflowMetric]) -> Iterator[tuple[int, str, dict[str, float]]]:
    """Time, host and values, under our keys and in our units, of MLflow's system metrics."""
    by_time: dict[tuple[int, str], dict[str, float]] = {}
    for metric in metrics:
        match = from_mlflow(metric.key)
        assert match is not None
        node = metric.key.removeprefix(PREFIX).rpartition("/")[0]
        values = by_time.setdefault((metric.time_ms, node), {})
        values[match.key] = metric.value / match.metric.mlflow_factor
    for (time_ms, node), values in by_time.items():
        yield time_ms, node, values


def _is_system(key: str) -> bool:
    return key.startswith(PREFIX) and from_mlflow(key) is not None


def _restore_infinity(value: float) -> float:
    """Return a value; MLflow stores an infinite one in a database as the largest number."""
    if abs(value) >= 1.7976931348623157e308:
        return float("inf") if value > 0 else float("-inf")
    return value
