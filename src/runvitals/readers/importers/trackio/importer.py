"""Imports the projects of trackio: each SQLite file is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, Final

from runvitals.model import media
from runvitals.readers.importers.csv_files.cells import time_ms
from runvitals.readers.importers.histograms import histogram
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, derived_run_id
from runvitals.readers.importers.shapes import mappings
from runvitals.readers.importers.trackio.database import TrackioDatabase, TrackioRow
from runvitals.readers.importers.trackio.system_metrics import our_metrics

_KINDS: Final = {
    "trackio.image": media.IMAGE,
    "trackio.audio": media.AUDIO,
    "trackio.video": media.VIDEO,
    "trackio.html": media.HTML,
}
_LEVELS: Final = {"info": "info", "warn": "warning", "error": "error"}
_INTERVAL_S: Final = 10.0


def import_trackio(
    path: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the projects in a folder of trackio, or of one file. Runs that exist already are left alone.

    Args:
        path: a file `PROJECT.db`, or the folder of them (`~/.cache/huggingface/trackio`).
        directory: the data folder.
        project: default: the name of the file.
        run_id: import only the run that has this id here.
        team: see `RunDescription`.

    Yields:
        The same report after each run.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file is not trackio's.
    """
    report = ImportReport()
    for file in _databases(path):
        with report.reporting(os.path.basename(file), file), closing(TrackioDatabase(file)) as database:
            source = os.path.splitext(os.path.basename(file))[0]
            runs = database.runs()
            report.total += len(runs)
            for run, name in runs:
                id_here = _id_of(run, source)
                if run_id is not None and id_here != run_id:
                    continue
                media_folder = os.path.join(os.path.dirname(file), "media", source)
                about = RunDescription(id_here, project or source, "trackio", 0, name, team=team)
                run_import = _RunImport(database, run, about, media_folder, report)
                report.attempt(id_here, directory, partial(run_import.write, directory), file)
                yield report
            report.leave_out("rows that cannot be read", database.damaged)
    yield report


def _databases(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    files = [os.path.join(path, name) for name in names if name.endswith(".db")]
    if not files:
        raise FileNotFoundError(f"there is no file PROJECT.db of trackio in {path}")
    return files


def _id_of(run: str, project: str) -> str:
    """Return the id of a run: that of trackio, or of older files, which have only names, one made of both."""
    if len(run) == 32 and all(letter in "0123456789abcdef" for letter in run):
        return run
    return derived_run_id(run, f"{project}\n{run}")


class _RunImport:
    """Writes one run."""

    def __init__(
        self,
        database: TrackioDatabase,
        run: str,
        about: RunDescription,
        media_folder: str,
        report: ImportReport,
    ) -> None:
        self._database = database
        self._run = run
        self._about = about
        self._media_folder = os.path.realpath(media_folder)
        self._report = report

    def write(self, directory: str) -> None:
        config = self._database.config(self._run)
        about = self._about
        about.group = str(config.get("_Group") or "")
        about.config = {name: value for name, value in config.items() if not name.startswith("_")}
        if config.get("_Username"):
            about.about = {"user": str(config["_Username"])}
        span = self._database.span(self._run)
        if span is None:
            self._report.leave_out("runs that logged nothing")
            return
        first_ms, last_ms = span
        created = time_ms(str(config.get("_Created")))
        about.started_ms = first_ms if created is None else min(first_ms, int(created[0]))
        with RunDraft(directory, about, _INTERVAL_S) as draft:
            for row in self._database.rows(self._run):
                self._write_row(draft, row)
            for row in self._database.system_rows(self._run):
                samples, others = our_metrics(row.values)
                if samples:
                    draft.sample(row.time_ms, samples)
                if others:
                    draft.row(row.time_ms, None, others)
            for alert in self._database.alerts(self._run):
                level = _LEVELS.get(alert.level, "info")
                draft.event(alert.time_ms, "alert", level, f"{alert.title}: {alert.text}".rstrip(": "))
            draft.end("finished", last_ms)
            draft.complete()
        self._report.add(about.id, about.project, draft)

    def _write_row(self, draft: RunDraft, row: TrackioRow) -> None:
        values = dict(row.values)
        for name, value in row.values.items():
            if isinstance(value, Mapping) and str(value.get("_type", "")).startswith("trackio."):
                del values[name]
                self._write_media(draft, row, name, value)
        draft.row(row.time_ms, row.step, values)

    def _write_media(self, draft: RunDraft, row: TrackioRow, name: str, value: Mapping[str, Any]) -> None:
        """Store a picture, sound, video or page, a histogram, or a text."""
        form = str(value["_type"])
        if form in _KINDS:
            path = os.path.realpath(
                os.path.join(self._media_folder, os.pardir, str(value.get("file_path", "")))
            )
            if not path.startswith(os.path.dirname(self._media_folder) + os.sep) or not os.path.isfile(path):
                self._report.leave_out("media whose file is missing")
                return
            item = draft.store_file(path)
            if item is None:
                return
            caption = {"caption": str(value["caption"])} if value.get("caption") else {}
            draft.media(row.time_ms, row.step, name, _KINDS[form], [{**item, **caption}])
        elif form == "trackio.histogram" and (bars := histogram(value.get("values"), value.get("bins"))):
            draft.media(row.time_ms, row.step, name, media.HISTOGRAM, [{"value": bars}])
        elif form == "trackio.markdown":
            text = str(value.get("_value", "")).encode("utf-8", "replace")
            draft.media(
                row.time_ms, row.step, name, media.TEXT, [{**draft.store(text), "type": "text/markdown"}]
            )
        elif form == "trackio.table" and isinstance(value.get("_value"), list):
            lines = mappings(value["_value"])
            columns = list(dict.fromkeys(column for line in lines for column in line))
            cells = [[line.get(column) for column in columns] for line in lines]
            draft.table(row.time_ms, row.step, name, columns, cells)
        else:
            self._report.leave_out(f"values of the type {form}")
