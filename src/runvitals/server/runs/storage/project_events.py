"""Events that tell the readers of runs what was done to their project."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Connection

from runvitals.server.audit.storage.audit import Actor
from runvitals.server.runs.storage.events import StoredEvent, add_to_runs

DELETED: Final = ("deleted", "Moved to the trash")
RESTORED: Final = ("restored", "Restored from the trash")


def moved(entity: str, project: str) -> tuple[str, str]:
    """The event of a run with a new place. The one before is not named: readers may not know it."""
    return "moved", f"Moved to {entity}/{project}"


def change_of_run(run_id: int, by: Actor, now_ms: int, what: tuple[str, str]) -> StoredEvent:
    """The event of a change. `what`: its name and text."""
    name, text = what
    account_id = by.id if by.kind == "service_account" else None
    return StoredEvent(run_id, now_ms, name, text=text, user_id=by.user_id, service_account_id=account_id)


def tell_runs(
    connection: Connection, which: ColumnElement[bool], by: Actor, now_ms: int, what: tuple[str, str]
) -> None:
    """Add the event of a change to the runs that it concerned, in its transaction."""
    add_to_runs(connection, which, change_of_run(0, by, now_ms, what))
