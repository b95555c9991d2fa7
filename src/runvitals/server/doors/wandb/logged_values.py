"""Media and the summary, which clients log besides numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from runvitals.model.names import sanitized_name
from runvitals.server.doors.wandb.logged_rows import HistoryLine
from runvitals.server.doors.wandb.media_items import media_record

_MAX_PER_LINE: Final = 1 << 16


def media_records(rows: Iterable[HistoryLine]) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the media of rows as records, each with a number of its own."""
    entries: list[tuple[int, str, dict[str, Any]]] = []
    for row in rows:
        for index, (name, value) in enumerate(row.media.items()):
            record = media_record(value)
            if record is not None and index < _MAX_PER_LINE:
                kind, items = record
                about = {"t": row.time_ms, "step": row.step, "key": sanitized_name(name), "kind": kind}
                number = row.line * _MAX_PER_LINE + index
                entries.append((number, "media", {**about, "items": items}))
    return entries
