"""What the bell of the page shows of the database, and up to when a user has seen it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from runvitals.server.database.database import StoredTable, in_transaction, insert
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.alerts import notification
from runvitals.server.database.tables.events import inbox_seen, run_alert_event
from runvitals.server.database.tables.runs import project, run

_RUN_KINDS: Final = "run."
"""Kinds of notifications about events of runs begin so."""


@dataclass(frozen=True, slots=True)
class EventOfRun:
    """Something that happened to a run, with where the run is. `decided_ms`: when users were notified."""

    run_id: int
    uid: str
    name: str
    project_id: int
    project: str
    entity_id: int | None
    entity: str | None
    id: int
    event: str
    level: str
    decided_ms: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnNotification:
    """A notification to a user that is about no event of a run.

    Attributes:
        path: where it leads on this server.
        report_id: the report that it is about.
    """

    id: int
    kind: str
    text: str
    path: str | None
    created_ms: int
    report_id: int | None = None


class InboxTable(StoredTable):
    """Reads what the bell shows; keeps what was seen."""

    def events_of(self, author_id: int, since_ms: int, limit: int) -> list[EventOfRun]:
        """Return the newest events of an author's runs of which users were notified, the newest first."""
        row = run_alert_event.c
        statement: Select[Any] = (
            select(row.id, row.event, row.level, row.data, run.c.id.label("run_id"), run.c.uid, run.c.name)
            .add_columns(run.c.project_id, project.c.name.label("project"))
            .add_columns(project.c.entity_id, entity.c.name.label("entity"))
            .join(run, run.c.id == row.run_id)
            .join(project, project.c.id == run.c.project_id)
            .outerjoin(entity, entity.c.id == project.c.entity_id)
            .where(run.c.author_id == author_id, run.c.deleted_ms.is_(None), row.time_ms >= since_ms)
            .where(row.data.contains('"told_ms"'))
            .order_by(row.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            events = []
            for values in connection.execute(statement).mappings():
                data = stored_object(values["data"], f"the event {values['id']}")
                events.append(EventOfRun(**{**values, "data": data}, decided_ms=int(data["told_ms"])))
            return events

    def notifications_of(self, user_id: int, since_ms: int, limit: int) -> list[OwnNotification]:
        """Return the newest notifications to a user that are about no event of a run, the newest first."""
        row = notification.c
        statement = (
            select(row.id, row.kind, row.text, row.payload, row.created_ms)
            .where(row.target == f"user:{user_id}", row.created_ms >= since_ms)
            .where(func.substr(row.kind, 1, len(_RUN_KINDS)) != _RUN_KINDS)
            .order_by(row.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            rows = []
            for number, kind, text, payload_text, created_ms in connection.execute(statement):
                payload = stored_object(payload_text, f"the notification {number}")
                path, report_id = payload.get("path"), payload.get("report_id")
                rows.append(OwnNotification(number, kind, text, path, created_ms, report_id))
            return rows

    def seen_ms(self, user_id: int) -> int:
        """Return up to when a user has seen what the bell shows; 0: nothing."""
        statement = select(inbox_seen.c.seen_ms).where(inbox_seen.c.user_id == user_id)
        with self._database.read() as connection:
            return int(connection.execute(statement).scalar() or 0)

    @in_transaction
    def see(self, connection: Connection, user_id: int, seen_ms: int) -> None:
        """Note that a user has seen everything up to a time; an earlier time changes nothing."""
        seen = insert(connection, inbox_seen).values(user_id=user_id, seen_ms=seen_ms)
        later = inbox_seen.c.seen_ms < seen.excluded.seen_ms
        values = {"seen_ms": seen.excluded.seen_ms}
        connection.execute(seen.on_conflict_do_update(index_elements=["user_id"], set_=values, where=later))
