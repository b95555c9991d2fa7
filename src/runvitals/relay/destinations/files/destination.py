"""The destination `files:FOLDER?format=csv`: runs as files for other programs.

    FOLDER/samples/project=digits/run=abc/date=2026-11-21/monitor.node1.19f3a-000.csv
    FOLDER/logs/…      what run.log() wrote
    FOLDER/notes/…     events, lifecycle of processes, facts about the run, console output

Partitions are named in Hive's style, so DuckDB, Spark and pandas recognise project, run and date.

Exactly once: bytes that a crash left after a file's known length are truncated before the same range is
written again; a Parquet file itself records how far it goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote

from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination
from runvitals.relay.destinations.files.rows import (
    NOTES,
    Columns,
    TablePartition,
    TableRow,
    columns,
    fits,
    merge_columns,
    parts,
)
from runvitals.relay.destinations.files.text_formats import CsvFormat, JsonLinesFormat
from runvitals.relay.engine.exactly_once import all_or_nothing, append

FORMATS = ("csv", "jsonl", "arrow", "parquet")
# A new file is started after this many bytes, or, for Parquet, this many values.
MAX_BYTES = 128 * 1024 * 1024
MAX_VALUES = 2_000_000
_PARQUET_INTERVAL_S = 30.0
_MAX_DAYS = 3


class AppendingFormat(Protocol):
    """A format whose files are appended to."""

    extension: str

    def head(self, table: str, columns: Columns) -> bytes:
        """Return the beginning of a file."""

    def rows(self, table: str, columns: Columns, rows: list[TableRow]) -> bytes:
        """Return rows to append to a file that has these columns."""


class FilesDestination(Destination):
    """Writes files.

    Args:
        address: a folder, relative to the training's working directory; `?format=` csv (the default), jsonl,
            arrow or parquet. The last two require pyarrow.
        context: `state["files"]` keeps the current file of each table of each writer, with its length and
            columns.

    Raises:
        ValueError: invalid address.
        ModuleNotFoundError: pyarrow is not installed.
    """

    name = "files"
    prompt = False

    def __init__(self, address: str, context: Context) -> None:
        folder, _, query = address.removeprefix("//").partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        format = options.pop("format", "csv")
        if not folder or options or format not in FORMATS:
            raise ValueError(
                f"invalid destination files:{address}; expected files:FOLDER?format={'|'.join(FORMATS)}"
            )
        self._root = os.path.join(context.cwd, os.path.expanduser(folder))
        if os.path.exists(self._root) and not os.path.isdir(self._root):
            raise ValueError(f"files: {self._root} is not a folder")
        self._state = context.state
        self._write: Callable[[Batch, TablePartition], None]
        self._format: AppendingFormat
        if format == "parquet":
            self.interval_s = _PARQUET_INTERVAL_S
            self._write = self._rewriter()
        else:
            self._format = _appending_format(format)
            self._write = self._append

    def deliver(self, batch: Batch) -> None:
        """Write a batch, or raise OSError and leave the state unchanged."""
        with all_or_nothing(self._state):
            for part in parts(batch):
                self._write(batch, part)

    # -- files

    def _file(self, batch: Batch, part: TablePartition) -> dict[str, Any]:
        """Return the state of the current file for a partition."""
        files: dict[str, dict[str, Any]] = self._state.setdefault("files", {})
        has_all = self._state.setdefault("whole", {}).setdefault(batch.writer.name, batch.first_seq == 0)
        key = f"{part.table}/{batch.writer.name}/{part.date}"
        if key not in files:
            days = sorted(day for day in files if day.rpartition("/")[0] == key.rpartition("/")[0])
            for day in days[: 1 - _MAX_DAYS]:
                del files[day]
            file = files[key] = {"number": 0, "length": 0, "columns": {}}
            existing = self._numbers(batch, part, file)
            if has_all and (not days or key > days[-1]):
                for path in existing.values():  # the position was lost: everything is delivered again
                    os.unlink(path)
            else:
                file["number"] = max(existing, default=-1) + 1
        return files[key]

    def _numbers(self, batch: Batch, part: TablePartition, file: dict[str, Any]) -> dict[int, str]:
        """Return the existing files of a table, a writer and a day, by number."""
        folder = os.path.dirname(self._path(batch, part, file, ""))
        start = f"{batch.writer.name}-"
        try:
            names = [name for name in os.listdir(folder) if name.startswith(start)]
        except FileNotFoundError:
            return {}
        numbers = {name: name.removeprefix(start).partition(".")[0] for name in names}
        return {int(text): os.path.join(folder, name) for name, text in numbers.items() if text.isdigit()}

    def _path(self, batch: Batch, part: TablePartition, file: dict[str, Any], extension: str) -> str:
        return os.path.join(
            self._root,
            part.table,
            f"project={quote(batch.run.project, safe=' ')}",
            f"run={batch.run.id}",
            f"date={part.date}",
            f"{batch.writer.name}-{file['number']:03d}.{extension}",
        )

    # -- writing

    def _append(self, batch: Batch, part: TablePartition) -> None:
        format = (
            JsonLinesFormat() if part.table == NOTES and isinstance(self._format, CsvFormat) else self._format
        )
        file = self._file(batch, part)
        needed = columns(part.rows)
        path = self._path(batch, part, file, format.extension)
        is_full = file["length"] >= MAX_BYTES or (
            format.head(part.table, {}) and not fits(needed, file["columns"])
        )
        if file["length"] and (is_full or _size(path) < file["length"]):
            file["number"] += 1
            file["length"] = 0
            path = self._path(batch, part, file, format.extension)
        data = format.rows(part.table, file["columns"], part.rows) if file["length"] else b""
        if not file["length"]:
            file["columns"] = merge_columns(file["columns"], needed)
            data = format.head(part.table, file["columns"]) + format.rows(
                part.table, file["columns"], part.rows
            )
        append(path, file["length"], data)
        file["length"] += len(data)

    def _rewriter(self) -> Callable[[Batch, TablePartition], None]:
        from runvitals.relay.destinations.files.arrow_formats import ParquetFormat

        parquet = ParquetFormat()

        def rewrite(batch: Batch, part: TablePartition) -> None:
            file = self._file(batch, part)
            needed = columns(part.rows)
            clash = any(file["columns"].get(name, kind) != kind for name, kind in needed.items())
            if clash or file["length"] >= MAX_VALUES:
                file["number"] += 1
                file["columns"] = merge_columns(file["columns"], needed) if clash else {}
            merged_columns = {name: file["columns"].get(name, kind) for name, kind in needed.items()}
            file["columns"] = merge_columns(file["columns"], merged_columns)
            path = self._path(batch, part, file, parquet.extension)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file["length"] = parquet.add(path, part.table, merged_columns, part.rows, batch.last_seq)

        return rewrite


def _appending_format(format: str) -> AppendingFormat:
    if format == "csv":
        return CsvFormat()
    if format == "jsonl":
        return JsonLinesFormat()
    from runvitals.relay.destinations.files.arrow_formats import ArrowFormat

    return ArrowFormat()


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
