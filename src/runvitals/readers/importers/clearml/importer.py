"""Imports offline sessions of ClearML: each is a run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any, Final

from runvitals.journal import paths
from runvitals.model import media
from runvitals.readers.importers.clearml.session import ClearmlSession, sessions_at, unpack
from runvitals.readers.importers.mlflow.importer import parameter
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, run_id_of
from runvitals.readers.importers.shapes import listed, mapping

_SCALAR: Final = "training_stats_scalar"
_IMAGE: Final = "training_debug_image"
_ONLY_VALUE: Final = -(2**31)
"""The iteration of values that have none: `report_single_value`."""
_MONITOR: Final = ":monitor:"
_OF_GPU: Final = re.compile(r"gpu_(\d+)_(\w+)", re.ASCII)
_GPU: Final = {
    "utilization": "gpu",
    "temperature": "temp",
    "mem_usage": "memoryAllocated",
    "power_draw": "powerWatts",
}
_INTERVAL_S: Final = 30.0
_QUIET_S: Final = 600.0


def import_clearml(
    path: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the sessions at a path. Runs that exist already are left alone.

    Args:
        path: the folder or zip file of a session, or a folder of them (`~/.clearml/cache/offline`).
        directory: the data folder.
        project: default: that of the task.
        run_id: import only the run that has this id here.
        team: see `RunDescription`.

    Yields:
        The same report after each session.

    Raises:
        FileNotFoundError: there is none.
    """
    sources = sessions_at(path)
    report = ImportReport(total=len(sources))
    for source in sources:
        with report.reporting(os.path.basename(source), source):
            if os.path.isfile(source):
                with TemporaryDirectory(prefix="runvitals-clearml-") as folder:
                    unpack(source, folder)
                    _import_session(folder, directory, project, run_id, team, report, True)
            else:
                _import_session(source, directory, project, run_id, team, report, False)
        yield report


def _import_session(
    folder: str,
    directory: str,
    project: str | None,
    run_id: str | None,
    team: str,
    report: ImportReport,
    has_ended: bool,
) -> None:
    session = ClearmlSession(folder)
    id_here = run_id_of(session.task["id"])
    if run_id is not None and id_here != run_id:
        return
    if os.path.exists(paths.run_dir(id_here, directory)):
        report.existing.append(id_here)
        return
    if not has_ended and time.time() - session.changed_s() < _QUIET_S:
        report.leave_out("sessions that may go on: something was written in the last ten minutes")
        return
    _SessionImport(session, _description(session.task, id_here, project, team), report).write(
        directory, has_ended
    )


def _description(task: Mapping[str, Any], id_here: str, project: str | None, team: str) -> RunDescription:
    script = mapping(task.get("script"))
    command = [script.get(name) for name in ("binary", "entry_point")]
    return RunDescription(
        id_here,
        project or str(task.get("project_name") or "clearml"),
        "clearml",
        0,
        str(task.get("name") or ""),
        job_type=str(task.get("type") or ""),
        notes=str(task.get("comment") or ""),
        tags=[str(tag) for tag in listed(task.get("tags"))],
        config=_config(task),
        about={"command": [str(word) for word in command if word]},
        team=team,
    )


def _config(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters by name, those of other sections than `General` after the name of theirs."""
    config: dict[str, Any] = {}
    for section, entries in mapping(task.get("hyperparams")).items():
        for name, entry in mapping(entries).items():
            value = mapping(entry).get("value")
            is_text = mapping(entry).get("type") == "str" or not isinstance(value, str)
            key = name if section == "General" else f"{section}/{name}"
            config[key] = value if is_text else parameter(str(value))
    for name, entry in mapping(task.get("configuration")).items():
        config[f"configuration/{name}"] = mapping(entry).get("value")
    return config


class _SessionImport:
    """Writes one run."""

    def __init__(self, session: ClearmlSession, about: RunDescription, report: ImportReport) -> None:
        self._session, self._about, self._report = session, about, report
        self._row: dict[str, Any] = {}
        self._step: int | None = None
        self._row_ms = 0
        self._summary: dict[str, float] = {}

    def write(self, directory: str, has_ended: bool) -> None:
        times = [
            int(event["timestamp"])
            for part in (self._session.metrics, self._session.printed)
            for event in part()
        ]
        self._session.damaged = 0
        if not times:
            self._report.leave_out("sessions that reported nothing")
            return
        self._about.started_ms, last_ms = min(times), max(times)
        with RunDraft(directory, self._about, _INTERVAL_S) as draft:
            for event in self._session.metrics():
                self._write_event(draft, event)
            self._end_row(draft)
            for event in self._session.printed():
                text = f"{event.get('msg', '')}\n"
                draft.print(int(event["timestamp"]), text, event.get("level") in ("error", "critical"))
            if self._summary:
                draft.info("summary", self._summary)
            self._copy_artifacts(draft, last_ms)
            draft.end("finished" if has_ended else "crashed", last_ms)
            draft.complete()
        self._report.leave_out("events that cannot be read", self._session.damaged)
        unfinished = "" if has_ended else "; it was not closed"
        self._report.add(self._about.id, self._about.project, draft, unfinished)

    def _write_event(self, draft: RunDraft, event: Mapping[str, Any]) -> None:
        kind, metric, variant = event.get("type"), str(event.get("metric")), str(event.get("variant"))
        name = metric if metric == variant else f"{metric}/{variant}"
        if kind == _IMAGE:
            self._write_image(draft, event, name)
            return
        value = event.get("value")
        if kind != _SCALAR or isinstance(value, bool) or not isinstance(value, (int, float)):
            self._report.leave_out(f"events of the type {kind}")
            return
        time_ms, step = int(event["timestamp"]), event.get("iter")
        if step == _ONLY_VALUE:
            self._summary[variant if metric == "Summary" else name] = value
            return
        ours = _our_metric(variant) if metric.startswith(_MONITOR) else None
        if ours is not None:
            draft.sample(time_ms, {ours: float(value)})
            return
        if step != self._step or name in self._row:
            self._end_row(draft)
        self._step, self._row_ms = (step if isinstance(step, int) else None), time_ms
        self._row[name] = value

    def _end_row(self, draft: RunDraft) -> None:
        if self._row:
            draft.row(self._row_ms, self._step, self._row)
        self._row = {}

    def _write_image(self, draft: RunDraft, event: Mapping[str, Any], name: str) -> None:
        path = self._session.file(event.get("key")) or self._session.file(event.get("url"))
        if path is None:
            self._report.leave_out("images whose file is missing")
            return
        step = event.get("iter")
        item = draft.store_file(path)
        if item is not None:
            draft.media(
                int(event["timestamp"]), step if isinstance(step, int) else None, name, media.IMAGE, [item]
            )

    def _copy_artifacts(self, draft: RunDraft, time_ms: int) -> None:
        artifacts = listed(mapping(self._session.task.get("execution")).get("artifacts"))
        for artifact in map(mapping, artifacts):
            path = self._session.file(artifact.get("uri"))
            if path is None:
                self._report.leave_out("artifacts whose file is missing")
            else:
                draft.saved_file(time_ms, f"{artifact.get('key')}/{os.path.basename(path)}", path)
        self._report.leave_out("models", len(listed(self._session.task.get("offline_output_models"))))


def _our_metric(variant: str) -> str | None:
    """Return our key of a metric of ClearML's monitor; None if we have none for it.

    Example:
        >>> _our_metric("gpu_0_utilization"), _our_metric("io_read_mbs")
        ('gpu.0.gpu', None)
    """
    if variant == "cpu_usage":
        return "cpu.mean"
    gpu = _OF_GPU.fullmatch(variant)
    return f"gpu.{gpu[1]}.{_GPU[gpu[2]]}" if gpu is not None and gpu[2] in _GPU else None
