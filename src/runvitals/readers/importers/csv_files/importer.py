"""Imports CSV files, each as a run: of spreadsheets, trackers and our own exports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Final

from runvitals.journal import paths
from runvitals.readers.importers.csv_files.cells import is_empty, times_ms, values
from runvitals.readers.importers.csv_files.columns import TableColumns, columns_of
from runvitals.readers.importers.csv_files.table import RowBlock, Table, open_table
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, derived_run_id
from runvitals.readers.importers.sources import REFUSED, checked_file, files_below

_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def import_csv(
    path: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import a CSV file, or all in a folder. Runs that exist already are left alone.

    Args:
        path: of the file or folder.
        directory: the data folder.
        project: default: the name of the folder that has the file.
        run_id: the id of the run, for a single file; default: from its name and folder.
        team: see `RunDescription`.

    Yields:
        The same report after each file.

    Raises:
        FileNotFoundError: no such file, or none in the folder.
        ValueError: `run_id` for several files.
    """
    refused: list[str] = []
    files = csv_files(path, refused)
    if run_id is not None and len(files) > 1:
        raise ValueError(
            f"--run {run_id} applies to a single file, but {len(files)} files were found in {path}"
        )
    report = ImportReport(total=len(files))
    report.leave_out(REFUSED, len(refused))
    for file in files:
        name = _name_of(file)
        id_here = paths.check_run_id(run_id) if run_id else id_of(file)
        project_name = project or os.path.basename(os.path.dirname(os.path.abspath(file))) or "csv"
        about = RunDescription(id_here, project_name, "csv", 0, name, team=team)
        parts = _write_run(file, directory, about, report)
        yield from report.attempt_in_parts(id_here, directory, parts, file)
        yield report


def csv_files(path: str, refused: list[str]) -> list[str]:
    """Return the CSV files at a path, sorted by name; see `files_below`.

    Raises:
        FileNotFoundError: there are none.
    """
    if not os.path.isdir(path):
        return [checked_file(path)]
    files = sorted(
        os.path.join(folder, name)
        for folder, names in files_below(
            path, lambda name: name.lower().endswith(_SUFFIXES) and not name.startswith("."), refused
        )
        for name in names
    )
    if not files:
        raise FileNotFoundError(f"there is no CSV file ({', '.join(_SUFFIXES)}) in {path}")
    return files


def id_of(path: str) -> str:
    """Return the id of a file's run: the same whenever the file is imported from the same folder."""
    return derived_run_id(_name_of(path), os.path.realpath(path))


def _name_of(path: str) -> str:
    return os.path.splitext(os.path.basename(path).removesuffix(".gz"))[0]


def _write_run(path: str, directory: str, about: RunDescription, report: ImportReport) -> Iterator[int]:
    table = open_table(path)
    columns = columns_of(table)
    written_ms = int(os.stat(path).st_mtime * 1000)
    about.started_ms = written_ms if columns.first_ms is None else int(columns.first_ms)
    with RunDraft(directory, about) as draft:
        rows = _Rows(columns, about.started_ms)
        for block in table.blocks():
            for moment, step, logged in rows.of(block):
                draft.row(moment, step, logged)
            yield len(block.rows)
        draft.end("finished", rows.last_ms)
        draft.complete()
    report.add(about.id, about.project, draft, "".join(f"; {note}" for note in rows.notes(table)))


class _Rows:
    """The rows of a file, to be logged.

    Attributes:
        last_ms: the newest time so far.
    """

    def __init__(self, columns: TableColumns, started_ms: int) -> None:
        self._columns = columns
        self._seen_steps: set[float] = set()
        self._repeated = self._unreadable = self._without_zone = 0
        self.last_ms = self._now_ms = started_ms

    def of(self, block: RowBlock) -> Iterator[tuple[int, float | None, dict[str, Any]]]:
        """Yield time, step and values of the rows of the next block."""
        about, cells = self._columns, block.columns()
        names = tuple(about.values.values())
        columns = [values(cells[index], about.mark) for index in about.values]
        for moment, step, row in zip(
            self._times(cells), self._steps(cells), zip(*columns, strict=True), strict=True
        ):
            logged = zip(names, row, strict=True)
            yield moment, step, {name: value for name, value in logged if value is not None}

    def _steps(self, cells: Sequence[Sequence[str]]) -> Iterator[float | None]:
        index = self._columns.step
        if index is None:
            yield from repeat(None, len(cells[0]))
            return
        for step in values(cells[index], self._columns.mark):
            if not isinstance(step, float):
                yield None
                continue
            self._repeated += step in self._seen_steps
            self._seen_steps.add(step)
            yield int(step) if step.is_integer() else step

    def _times(self, cells: Sequence[Sequence[str]]) -> Iterator[int]:
        """Yield the times of rows: that of the row before, for one that has none."""
        index = self._columns.time
        if index is None:
            yield from repeat(self._now_ms, len(cells[0]))
            return
        for cell, moment in zip(cells[index], times_ms(cells[index]), strict=True):
            if moment is not None:
                self._now_ms = int(moment[0])
                self.last_ms = max(self.last_ms, self._now_ms)
                self._without_zone += not moment[1]
            else:
                self._unreadable += not is_empty(cell)
            yield self._now_ms

    def notes(self, table: Table) -> Iterator[str]:
        """Yield what a reader of the rows should know."""
        if table.encoding == "cp1252":
            yield "read as Windows-1252, since it is not UTF-8"
        if self._columns.mark == ",":
            yield "numbers have a decimal comma"
        if self._columns.time is None:
            why = self._columns.unreadable_times or "no column of times"
            yield f"{why}: all rows have the time at which the file was written"
        if self._without_zone:
            yield f"{self._without_zone} times without a zone, taken for UTC"
        if self._unreadable:
            yield f"{self._unreadable} times that cannot be read: those rows have the time of the row before"
        if self._repeated:
            yield f"{self._repeated} rows with a step that an earlier row has, kept"
