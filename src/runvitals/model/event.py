"""An event of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runvitals.model.run_author import RunAuthor, RunServiceAccount


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a time (ms UTC).

    An alert, a marker, lost records, a failing collector, or a change that somebody made on a server.

    Args:
        author: the user who made the change, or whose key sent the event; None: no user, or nobody known.
        service_account: the service account that did.
    """

    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    author: RunAuthor | None = None
    service_account: RunServiceAccount | None = None
