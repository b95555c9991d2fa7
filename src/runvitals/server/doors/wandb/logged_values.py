"""Media and the summary, which clients log besides numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from runvitals.model.media import VALUE
from runvitals.model.names import sanitized_name
from runvitals.model.values import Sanitizer
from runvitals.server.doors.wandb.logged_rows import HistoryLine
from runvitals.server.doors.wandb.media_items import media_record

_MAX_PER_LINE: Final = 1 << 16


def media_records(rows: Iterable[HistoryLine], faults: Counter[str]) -> list[tuple[int, str, dict[str, Any]]]:
    """Return what is more than a number in rows, as records, each with a number of its own.

    A medium is also kept as the client sent it, for those who read it by step.

    Args:
        faults: gets what could not be kept as it is, such as a text that is too long, with how often.
    """
    entries: list[tuple[int, str, dict[str, Any]]] = []
    for row in rows:
        for index, (name, value) in enumerate(row.others.items()):
            if index >= _MAX_PER_LINE // 2:
                break
            about = {"t": row.sent_ms, "step": row.step, "key": sanitized_name(name)}
            number = row.line * _MAX_PER_LINE + index
            record = media_record(value)
            if record is not None:
                kind, items = record
                entries.append((number, "media", {**about, "kind": kind, "items": items}))
            sanitizer = Sanitizer()
            items = [{"value": sanitizer.value(value)}]
            faults.update(sanitizer.faults)
            entries.append((number + _MAX_PER_LINE // 2, "media", {**about, "kind": VALUE, "items": items}))
    return entries
