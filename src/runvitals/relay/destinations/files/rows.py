"""Converts a batch to rows of three tables: samples, log() calls, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from runvitals.base.json_codec import dumps
from runvitals.model.run_json import finite
from runvitals.readers.journals.history import leaves
from runvitals.relay.batch import Batch

_EPOCH = date(1970, 1, 1).toordinal()
SAMPLES, LOGS, NOTES = "samples", "logs", "notes"
NUMBER, WHOLE, TEXT = "number", "whole", "text"

Columns = dict[str, str]
"""Column name -> its type: `NUMBER` (float64), `WHOLE` (int64) or `TEXT`."""

# The columns before the values.
ROW_COLUMNS: Mapping[str, Columns] = {
    SAMPLES: {"host": TEXT},
    LOGS: {"host": TEXT, "rank": WHOLE, "step": NUMBER},
    NOTES: {"host": TEXT, "rank": WHOLE},
}


class TableRow(NamedTuple):
    """One row. `origin` has the keys of `ROW_COLUMNS`; None in `values` is a gap."""

    time_ms: int
    origin: Mapping[str, Any]
    values: Mapping[str, Any]


class TablePartition(NamedTuple):
    """Rows of one table, one writer and one day (UTC, `2026-11-21`)."""

    table: str
    date: str
    rows: list[TableRow]


def parts(batch: Batch) -> Iterator[TablePartition]:
    """Yield the rows of a batch, in order.

    Example:
        >>> [(part.table, part.date, len(part.rows)) for part in parts(batch)]
        [('samples', '2026-11-20', 3), ('samples', '2026-11-21', 2), ('notes', '2026-11-21', 1)]
    """
    for table, rows in ((SAMPLES, _samples(batch)), (LOGS, _logs(batch)), (NOTES, _notes(batch))):
        days: dict[int, list[TableRow]] = {}
        for row in rows:
            days.setdefault(row.time_ms // 86_400_000, []).append(row)
        for day, members in days.items():
            yield TablePartition(table, _date(day), members)


def _date(day: int) -> str:
    """Return the date of a day since 1970, clamped to what `date` supports."""
    return date.fromordinal(min(max(_EPOCH + day, 1), date.max.toordinal())).isoformat()


def _samples(batch: Batch) -> Iterator[TableRow]:
    origin = {"host": batch.writer.host}
    for moment in batch.moments():
        values = {
            key: value if value == value else None
            for key, value in zip(moment.keys, moment.values, strict=True)
        }
        yield TableRow(moment.time_ms, origin, values)


def _logs(batch: Batch) -> Iterator[TableRow]:
    writer = batch.writer
    for row in batch.logs:
        origin = {"host": writer.host, "rank": writer.rank, "step": row.step}
        yield TableRow(row.time_ms, origin, {key: _plain(value) for key, value in leaves(row.data)})


def _notes(batch: Batch) -> Iterator[TableRow]:
    origin = {"host": batch.writer.host, "rank": batch.writer.rank}
    for note in batch.notes:
        text = dumps(finite(dict(note.value))).decode("utf-8", "replace")
        yield TableRow(note.time_ms, origin, {"kind": note.kind, "note": text})


def _plain(value: Any) -> float | str | None:
    """Return a number or a text; lists become JSON."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)) and abs(value) < 1 << 1023:
        return float(value)
    if isinstance(value, float):  # logged NaN and infinities are kept
        return value
    if value is None or isinstance(value, str):
        return value
    return dumps(finite(value)).decode("utf-8", "replace")


def columns(rows: list[TableRow]) -> Columns:
    """Return the columns that rows need, in order of first use."""
    kinds: Columns = {}
    for row in rows:
        for key, value in row.values.items():
            if isinstance(value, str):
                kinds[key] = TEXT
            else:
                kinds.setdefault(key, NUMBER)
    return kinds


def fits(needed: Columns, existing: Columns) -> bool:
    """Return whether the needed columns are a subset of the existing ones."""
    return all(existing.get(name) in (kind, TEXT) for name, kind in needed.items())


def merge_columns(existing: Columns, needed: Columns) -> Columns:
    """Return the columns that can hold both.

    Example:
        >>> merge_columns({"cpu": NUMBER, "note": TEXT}, {"note": NUMBER, "gpu": NUMBER})
        {'cpu': 'number', 'note': 'text', 'gpu': 'number'}
    """
    kinds = dict(existing)
    for name, kind in needed.items():
        kinds[name] = TEXT if TEXT in (kind, kinds.get(name)) else kind
    return kinds
