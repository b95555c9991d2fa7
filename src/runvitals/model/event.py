"""An event of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a time (ms UTC): an alert, a marker, lost records, a failing collector."""

    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
