"""Tables of few rows as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import Response

from runvitals.model.spreadsheets import inert_cell


def csv_response(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """A table with a header, as `csv_text`."""
    text = csv_text(columns, ([row[name] for name in columns] for row in rows))
    return Response(text, media_type="text/csv", headers={"cache-control": "no-store"})


def csv_text(columns: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV. Text that a spreadsheet would run as a formula gets a leading apostrophe.

    Args:
        columns: the header; None: no header.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if columns is not None:
        writer.writerow([_cell(name) for name in columns])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        value = " ".join(map(str, value))
    text = str(value)
    return inert_cell(text) if isinstance(value, str) else text
