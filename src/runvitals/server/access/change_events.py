"""Events that tell a run's readers who changed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runvitals.server.audit.storage.audit import Actor
from runvitals.server.projects.storage.projects import project_name
from runvitals.server.runs.storage.events import DELETED, RESTORED, StoredEvent, change_of_run

_EVENTS: Final = {
    "run.stop": ("stop_requested", "A stop was requested"),
    "run.update": ("edited", "Changed"),
    "run.set_author": ("edited", "Changed: author"),
    "run.move": ("moved", "Moved to"),
    "run.delete": DELETED,
    "run.restore": RESTORED,
}
"""Name and text of the event, by action of the audit log."""


def change_event(
    run_id: int, by: Actor, action: str, after: Mapping[str, Any], now_ms: int
) -> StoredEvent | None:
    """The event of a change by a user or service account; None for actions that have none."""
    if action not in _EVENTS:
        return None
    name, text = _EVENTS[action]
    if action == "run.update":
        text = f"{text}: {', '.join(after.get('fields', ()))}"
    elif action == "run.move":
        text = f"{text} {project_name(after.get('project'))}"
    return change_of_run(run_id, by, now_ms, (name, text))
