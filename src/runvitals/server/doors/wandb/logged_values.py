"""Media and the summary, which clients log besides numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from runvitals.model.names import sanitized_name
from runvitals.model.values import Sanitizer
from runvitals.server.doors.wandb.logged_rows import HistoryLine
from runvitals.server.doors.wandb.media_items import media_record
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.doors.wandb.stream_body import parse_line

_OWN: Final = "_"
_TYPE: Final = "_type"
_DEPTH: Final = 16
_CHOSEN: Final = frozenset(("min", "max", "mean", "best", "first", "last"))
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


def summary_sections(line: str) -> tuple[dict[str, Any], int]:
    """Return the sections of a summary, and how many lines are damaged.

    Nested values get dotted names, as those of rows. What is not a plain value is for wandb's clients only.

    Example:
        >>> summary_sections('{"loss": {"min": 0.5}, "net": {"a": 1, "b": 2}, "_step": 7}')
        ({'summary': {'loss': 0.5, 'net.a': 1, 'net.b': 2}, 'wandb': {'summary': {'_step': 7}}}, 0)
    """
    data = parse_line(line)
    if data is None:
        return {}, 1
    summary: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in Sanitizer().value(data).items():
        if key.startswith(_OWN) or (isinstance(value, dict) and _TYPE in value):
            own[key] = value
        else:
            _collect(summary, key, value, _DEPTH)
    sections = {"summary": summary, SECTION: {"summary": own} if own else {}}
    return {name: section for name, section in sections.items() if section}, 0


def _collect(summary: dict[str, Any], name: str, value: Any, levels: int) -> None:
    if not isinstance(value, dict) or levels < 1:
        summary[name] = value
    elif len(value) == 1 and value.keys() <= _CHOSEN:
        summary[name] = next(iter(value.values()))  # define_metric(summary=…) chose it
    else:
        for key, inner in value.items():
            _collect(summary, f"{name}.{key}", inner, levels - 1)
