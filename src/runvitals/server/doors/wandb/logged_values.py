"""What clients log besides numbers, and their summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from runvitals.model.values import Sanitizer
from runvitals.server.doors.wandb.logged_rows import LoggedRow
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.doors.wandb.stream_body import parsed_line

_OWN: Final = "_"
_MAX_PER_LINE: Final = 1 << 16


def media_records(rows: Iterable[LoggedRow]) -> list[tuple[int, str, dict[str, Any]]]:
    """The media of rows as records."""
    return []


def summary_sections(line: str) -> tuple[dict[str, Any], int]:
    """The sections of a summary, and how many lines are damaged.

    Example:
        >>> summary_sections('{"loss": 0.5, "_step": 7}')
        ({'summary': {'loss': 0.5}, 'wandb': {'summary': {'_step': 7}}}, 0)
    """
    data = parsed_line(line)
    if data is None:
        return {}, 1
    values = Sanitizer().value(data)
    summary = {key: value for key, value in values.items() if not key.startswith(_OWN)}
    own = {key: value for key, value in values.items() if key.startswith(_OWN)}
    sections = {"summary": summary, SECTION: {"summary": own} if own else {}}
    return {name: section for name, section in sections.items() if section}, 0
