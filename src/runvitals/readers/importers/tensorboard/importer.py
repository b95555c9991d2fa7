"""Imports a folder of event files: each folder that has some is a run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from runvitals.model import media
from runvitals.model.run_state import State
from runvitals.readers.importers.histograms import histogram
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, derived_run_id
from runvitals.readers.importers.sources import REFUSED, files_below
from runvitals.readers.importers.tensorboard.event_file import (
    EventFile,
    EventValue,
    LoggedEvent,
    check_readable,
)
from runvitals.readers.importers.tensorboard.sessions import Sessions, number_sessions

_MARK = "tfevents"
_RUNNING_S = 600.0
"""A run whose files were written to this recently may still be running."""
_STATES: dict[int, State] = {1: "finished", 2: "failed"}
_OWN_TAGS = ("_hparams_",)


def run_folders(root: str, refused: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders with event files, and the files of each in the order in which they were begun.

    Args:
        refused: see `files_below`.

    Raises:
        FileNotFoundError: there are none.
    """
    has_runs = False
    for folder, names in files_below(root, lambda name: _MARK in name and not name.startswith("."), refused):
        has_runs = True
        yield folder, [os.path.join(folder, name) for name in names]
    if not has_runs:
        raise FileNotFoundError(f"there is no event file of TensorBoard (…{_MARK}…) in {root}")


def import_tensorboard(
    root: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the runs in a folder. Runs that exist already are left alone.

    Args:
        root: the folder.
        directory: the data folder.
        project: default: the name of the folder.
        run_id: import only the run that has this id here.
        team: see `RunDescription`.

    Yields:
        The same report after each run.

    Raises:
        FileNotFoundError: there are no event files.
    """
    root = os.path.abspath(root)
    refused: list[str] = []
    folders = list(run_folders(root, refused))
    report = ImportReport(total=len(folders))
    report.leave_out(REFUSED, len(refused))
    for folder, files in folders:
        name = os.path.relpath(folder, root)
        name = os.path.basename(root) if name == os.curdir else name
        known_id = id_of(name, folder, files[0])
        if run_id is not None and known_id != run_id:
            continue
        project_name = project or os.path.basename(root) or "tensorboard"
        about = RunDescription(
            known_id, project_name, "tensorboard", 0, name, host=_host(files[0]), team=team
        )
        report.attempt(known_id, directory, partial(_Importer(directory, about, report).write, files), folder)
        yield report


def id_of(name: str, folder: str, first_file: str) -> str:
    """Return the id of a run, which TensorBoard has none for: the same whenever the folder is imported.

    Args:
        name: of its folder, relative to the imported one.
        folder: where it is; folders with equal names are different runs.
        first_file: its first file, whose name has the time and the host.
    """
    identity = f"{os.path.realpath(folder)}\n{os.path.basename(first_file)}"
    return derived_run_id(name.replace(os.sep, "-"), identity)


def first_event(files: Iterable[str]) -> LoggedEvent | None:
    """Return the first event that logged something."""
    return next((event for path in files for event in EventFile(path).events() if not event.begins), None)


def _host(path: str) -> str:
    """Return the host in the name of a file: `events.out.tfevents.<seconds>.<host>.<pid>.<number>`."""
    rest = os.path.basename(path).partition(f"{_MARK}.")[2].split(".")
    words = rest[1:]
    while words and (words[-1].isdigit() or words[-1] == "v2" or words[-1] == "runvitals"):
        words.pop()
    return ".".join(words) or "unknown"


class _Importer:
    """Writes one run."""

    def __init__(self, directory: str, about: RunDescription, report: ImportReport) -> None:
        self._directory = directory
        self._about = about
        self._report = report
        self._row: dict[str, float] = {}
        self._at = (0, 0)
        self._last_ms = 0
        self._state: State = "finished"

    def write(self, files: list[str]) -> None:
        sessions = Sessions(files)
        first = first_event(sessions.paths)
        if first is None:
            for path in files:
                check_readable(path)
            self._report.leave_out("folders without values")
            return
        self._about.started_ms = self._last_ms = first.time_ms
        with RunDraft(self._directory, self._about) as draft:
            for path in sessions.paths:
                self._write_file(draft, path, sessions)
            self._write_row(draft)
            restarts = [sessions.restarts[at] for at in sorted(sessions.restarts)]
            for restart in restarts:
                draft.event(restart.began_ms, "restart", "info", str(restart))
            written_s = max(os.stat(path).st_mtime for path in files)
            draft.end(None if time.time() - written_s < _RUNNING_S else self._state, self._last_ms)
            draft.complete()
        note = "".join(f"; {restart}" for restart in restarts)
        self._report.add(self._about.id, self._about.project, draft, note)

    def _write_file(self, draft: RunDraft, path: str, sessions: Sessions) -> None:
        file = EventFile(path)
        for number, event in number_sessions(file.events()):
            event.values = sessions.current(path, number, event)
            self._keep(draft, event)
            if not event.begins:
                self._last_ms = max(self._last_ms, event.time_ms)
        if file.damaged:
            draft.fault("a damaged record", file.damaged)
        if file.cut:
            draft.fault("a file that ends in the middle of a record")

    def _keep(self, draft: RunDraft, event: LoggedEvent) -> None:
        if event.config:
            draft.info("config", event.config)
        self._state = _STATES.get(event.status, self._state)
        for plugin in event.unknown:
            self._report.leave_out(f"values of the plugin {plugin}")
        for value in event.values:
            if value.kind == "number":
                if self._row and (self._at[1] != event.step or value.tag in self._row):
                    self._write_row(draft)
                if not self._row:
                    self._at = (event.time_ms, event.step)
                self._row[value.tag] = value.value
            elif not value.tag.startswith(_OWN_TAGS):
                self._keep_media(draft, event, value)

    def _write_row(self, draft: RunDraft) -> None:
        if self._row:
            draft.row(*self._at, self._row)
            self._row = {}

    def _keep_media(self, draft: RunDraft, event: LoggedEvent, value: EventValue) -> None:
        items: list[dict[str, Any]]
        if value.kind == "text":
            items = [{**draft.store(value.value.encode()), "type": "text/plain"}]
        elif value.kind == "histogram":
            bars = histogram(*value.value)
            items = [] if bars is None else [{"value": bars}]
        else:
            items = [draft.store(content) for content in value.value if isinstance(content, bytes)]
        kinds = {"text": media.TEXT, "histogram": media.HISTOGRAM, "image": media.IMAGE, "audio": media.AUDIO}
        if items:
            draft.media(event.time_ms, event.step, value.tag, kinds[value.kind], items)
        else:
            self._report.leave_out(f"values of the kind {value.kind} without content")
