"""Tables of few rows as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import Response

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_response(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """A table with a header. Text that a spreadsheet would run as a formula gets a leading apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    return Response(text.getvalue(), media_type="text/csv", headers={"cache-control": "no-store"})


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        value = " ".join(map(str, value))
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
