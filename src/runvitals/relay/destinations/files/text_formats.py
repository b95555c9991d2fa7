"""Text formats: CSV and JSON Lines."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta, timezone
from math import isfinite, isnan
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.model.spreadsheets import inert_cell
from runvitals.relay.destinations.files.rows import LOGS, NOTES, ROW_COLUMNS, SAMPLES, Columns, TableRow

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def iso(time_ms: int) -> str:
    """Return the time in ISO 8601, UTC with milliseconds; "" if `datetime` cannot represent it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


class CsvFormat:
    """A header, then one line per row; an empty cell means no value. `time_ms` and `time` come first."""

    extension = "csv"

    def head(self, table: str, columns: Columns) -> bytes:
        """Return the line of column names."""
        return _csv_line(
            ["time_ms", "time", *ROW_COLUMNS[table], *map(inert_cell, free_names(table, columns))]
        )

    def rows(self, table: str, columns: Columns, rows: list[TableRow]) -> bytes:
        """Return a line for each row; a value that a row lacks is empty."""
        lines = []
        for row in rows:
            cells = [_cell(row.values.get(name)) for name in columns]
            origin = [_cell(row.origin[name]) for name in ROW_COLUMNS[table]]
            lines.append(_csv_line([str(row.time_ms), iso(row.time_ms), *origin, *cells]))
        return b"".join(lines)


def free_names(table: str, columns: Columns) -> list[str]:
    """Return the names of columns; a logged name that collides with one of ours gets a `_` appended."""
    ours = {"time_ms", "time", *ROW_COLUMNS[table]}
    return [f"{name}_" if name in ours else name for name in columns]


def _csv_line(cells: list[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if not isnan(value) else "NaN"
    return inert_cell(value) if isinstance(value, str) else str(value)


class JsonLinesFormat:
    """One JSON object per row.

    `time_ms`, `time`, the columns of `ROW_COLUMNS`, and the values: nested in `metrics` or `data`, or, for
    notes, not nested.
    """

    extension = "jsonl"
    _VALUES_FIELD = {SAMPLES: "metrics", LOGS: "data", NOTES: ""}

    def head(self, table: str, columns: Columns) -> bytes:
        """Return nothing: each line has its names."""
        return b""

    def rows(self, table: str, columns: Columns, rows: list[TableRow]) -> bytes:
        """Return a line for each row."""
        return b"".join(self._line(self._VALUES_FIELD[table], row) for row in rows)

    def _line(self, field: str, row: TableRow) -> bytes:
        values = {name: _json(value) for name, value in row.values.items()}
        document: dict[str, Any] = {"time_ms": row.time_ms, "time": iso(row.time_ms), **row.origin}
        document.update({field: values} if field else values)
        return dumps(document) + b"\n"


def _json(value: Any) -> Any:
    """Return values that JSON cannot represent become text."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
