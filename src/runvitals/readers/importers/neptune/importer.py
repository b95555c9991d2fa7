"""Imports what `neptune-exporter` wrote before Neptune's service ended in March 2026."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from runvitals.model import media
from runvitals.model.run_state import State
from runvitals.readers.importers.histograms import histogram
from runvitals.readers.importers.neptune.parquet_files import (
    NeptuneExport,
    NeptuneRun,
    SeriesValue,
    milliseconds,
)
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, run_id_of
from runvitals.readers.importers.sources import REFUSED

_DESCRIPTIONS: Final = frozenset(
    f"sys/{name}"
    for name in ("name", "description", "hostname", "tags", "group_tags", "owner", "creation_time", "failed")
)
"""Attributes that describe a run, and are no part of its configuration here."""
_PART_VALUES: Final = 10_000
_TEXT_CHARACTERS: Final = 1000
"""A longer text is a file of the run."""
_CONSOLE: Final = {"stdout": False, "stderr": True}
"""The last part of the paths of series that are output, and whether it is that of errors."""
_FILE_FOLDERS: Final = ("", "files", "../files")
"""Where files may be, from the folder that was given: in it, or as the exporter puts them."""


def import_neptune(
    path: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the runs of an export. Runs that exist already are left alone.

    Args:
        path: the folder of the export, or one of its Parquet files.
        directory: the data folder.
        project: default: as in Neptune.
        run_id: import only the run that has this id here.
        team: see `RunDescription`.

    Yields:
        The same report after each run.

    Raises:
        FileNotFoundError: there is no Parquet file.
        OSError: pyarrow is not installed.
    """
    export = NeptuneExport(path)
    report = ImportReport(total=len(export.runs), failed=export.damaged)
    report.leave_out(REFUSED, len(export.refused))
    projects_of = Counter(run.id for run in export.runs)
    for run in export.runs:
        id_here = id_of(run, projects_of[run.id] > 1)
        if run_id is not None and id_here != run_id:
            continue
        parts = _import_run(export, run, id_here, directory, project, team, report)
        yield from report.attempt_in_parts(id_here, directory, parts, ", ".join(run.files))
        yield report
    yield report


def _import_run(
    export: NeptuneExport,
    run: NeptuneRun,
    id_here: str,
    directory: str,
    project: str | None,
    team: str,
    report: ImportReport,
) -> Iterator[int]:
    yield from _RunImport(export, run, id_here, project, team, report).write(directory)


def id_of(run: NeptuneRun, repeated: bool) -> str:
    """Return the id of a run: Neptune's, with a checksum of the project if another project has it too."""
    if not repeated:
        return run_id_of(run.id)
    return run_id_of(f"{run.id}-{hashlib.sha256(run.project.encode()).hexdigest()[:8]}")


class _RunImport:
    """Writes one run."""

    def __init__(
        self,
        export: NeptuneExport,
        run: NeptuneRun,
        id_here: str,
        project: str | None,
        team: str,
        report: ImportReport,
    ) -> None:
        self._export = export
        self._report = report
        self._rows = export.read(run)
        self._attributes, self._files = self._rows.attributes()
        workspace, _, name = run.project.rpartition("/")
        self._about = RunDescription(
            id_here, project or name or "neptune", "neptune", 0, entity=workspace, team=team
        )
        self._row: dict[str, Any] = {}
        self._at: tuple[int, float | None] = (0, None)

    def write(self, directory: str) -> Iterator[int]:
        """Write the run; yield how many rows were written since the last time."""
        self._describe()
        about = self._about
        self._now_ms = about.started_ms
        rows = 0
        with RunDraft(directory, about) as draft:
            for number, value in enumerate(self._rows.series(), 1):
                self._write_value(draft, value)
                if number % _PART_VALUES == 0:
                    yield draft.rows - rows
                    rows = draft.rows
            self._write_row(draft)
            for path, relative in self._files.items():
                self._copy_file(draft, path, relative)
            ended_ms = self._time("sys/modification_time") or self._now_ms
            draft.end(self._state(), max(ended_ms, self._now_ms))
            draft.complete()
        self._report.leave_out("rows without a path or a type", self._rows.damaged)
        self._report.add(about.id, about.project, draft)

    def _describe(self) -> None:
        attributes, about = self._attributes, self._about
        about.name = str(attributes.get("sys/name") or attributes.get("sys/custom_run_id") or "")
        about.notes = str(attributes.get("sys/description") or "")
        about.host = str(attributes.get("sys/hostname") or "unknown")
        about.tags = [*(attributes.get("sys/tags") or ()), *(attributes.get("sys/group_tags") or ())]
        if attributes.get("sys/owner"):
            about.about = {"user": str(attributes["sys/owner"])}
        first = next(self._rows.series(), None)
        first_ms = None if first is None else first.time_ms
        about.started_ms = self._time("sys/creation_time") or first_ms or 0
        about.config = {
            path: _plain(value) for path, value in attributes.items() if path not in _DESCRIPTIONS
        }

    def _time(self, path: str) -> int | None:
        value = self._attributes.get(path)
        return milliseconds(value) if isinstance(value, datetime) else None

    def _state(self) -> State:
        return "failed" if self._attributes.get("sys/failed") is True else "finished"

    def _write_value(self, draft: RunDraft, value: SeriesValue) -> None:
        if value.time_ms is not None:
            self._now_ms = value.time_ms
        name = value.path.rpartition("/")[2]
        if value.value is None:
            self._report.leave_out("values that are missing")
        elif value.kind == "float_series":
            self._add(draft, value, value.value)
        elif value.kind == "string_series" and name in _CONSOLE:
            draft.print(self._now_ms, f"{value.value}\n", _CONSOLE[name])
        elif value.kind == "string_series" and len(value.value) <= _TEXT_CHARACTERS:
            self._add(draft, value, value.value)
        elif value.kind == "string_series":
            item = {**draft.store(value.value.encode("utf-8", "replace")), "type": "text/plain"}
            draft.media(self._now_ms, value.step, value.path, media.TEXT, [item])
        elif value.kind == "histogram_series":
            self._write_histogram(draft, value)
        elif value.kind == "file_series":
            name = value.path if value.step is None else f"{value.path}/{value.step:g}"
            self._copy_file(draft, name, str(value.value))
        else:
            self._report.leave_out(f"values of the type {value.kind}")

    def _add(self, draft: RunDraft, value: SeriesValue, logged: Any) -> None:
        """Add a value to the row of its time and step."""
        step = value.step
        if step is not None and step.is_integer():
            step = int(step)
        if self._row and (self._at != (self._now_ms, step) or value.path in self._row):
            self._write_row(draft)
        self._at = self._now_ms, step
        self._row[value.path] = logged

    def _write_row(self, draft: RunDraft) -> None:
        if self._row:
            draft.row(*self._at, self._row)
            self._row = {}

    def _write_histogram(self, draft: RunDraft, value: SeriesValue) -> None:
        bars = histogram(value.value.get("values"), value.value.get("edges"))
        if bars is None:
            self._report.leave_out("histograms without edges or counts")
        else:
            draft.media(self._now_ms, value.step, value.path, media.HISTOGRAM, [{"value": bars}])

    def _copy_file(self, draft: RunDraft, name: str, relative: str) -> None:
        """Copy a file of the export; one that is named by a path outside of it is left out."""
        for folder in _FILE_FOLDERS:
            root = os.path.realpath(os.path.join(self._export.root, folder))
            path = os.path.realpath(os.path.join(root, relative))
            if path.startswith(root + os.sep) and os.path.exists(path):
                draft.saved_file(self._now_ms, name, path)
                return
        self._report.leave_out("files that the export does not have")


def _plain(value: Any) -> Any:
    """Return a value as configurations have it: times as texts."""
    return value.isoformat() if isinstance(value, datetime) else value
