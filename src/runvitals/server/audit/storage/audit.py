"""The audit log: who did what to whom, from where and by which key. Rows are only added.

Each row is written in the transaction of the change, so there is no change without its row. It never holds
secrets, hashes or what users wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import audit_event
from runvitals.server.database.text import LAST_CHARACTER

_HOST: Final = re.compile(r"^[a-z]+://([^/?#]*).*$", re.DOTALL | re.IGNORECASE)
MAX_ROWS = 1001
"""A page of 1000, and one more that shows whether there is another page."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who made a change, for the audit log.

    Attributes:
        via: session, key, link, provider or cli.
        key_public_id: the shown part of the key, if one was used.
        request_id: `X-Request-Id` of the response.
    """

    kind: Literal["user", "service_account", "anonymous", "system", "cli"]
    name: str
    id: int | None = None
    via: str = ""
    key_public_id: str | None = None
    ip: str | None = None
    agent: str | None = None
    request_id: str | None = None

    @property
    def user_id(self) -> int | None:
        """The id of the user; None if it was none."""
        return self.id if self.kind == "user" else None


CLI = Actor("cli", "cli", via="cli")
OPERATOR_NAME: Final = "The operator of the server"
"""Who is behind `CLI`, as mail about a change says it."""
SYSTEM = Actor("system", "system")


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One row of the audit log. `before` and `after`: what was changed, by name."""

    id: int
    time_ms: int
    action: str
    outcome: str
    actor_kind: str
    actor_id: int | None
    actor_name: str
    via: str
    key_public_id: str | None
    ip: str | None
    agent: str | None
    request_id: str | None
    entity_id: int | None
    entity: str | None
    project: str | None
    run: str | None
    target: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events to list.

    Attributes:
        action: may end in `*`.
        actor: the name of who did it.
        of_user: id and entity id of a user who did it, or whose account it was done to.
        from_ms, until_ms: times in ms UTC, the second exclusive.
        before_id: only older events: the id of the last one on the page before.
    """

    action: str | None = None
    actor: str | None = None
    actor_id: int | None = None
    of_user: tuple[int, int] | None = None
    entity_id: int | None = None
    entity: str | None = None
    project: str | None = None
    run: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None
    outcome: str | None = None
    target: str | None = None
    key_public_id: str | None = None
    before_id: int | None = None


def record(
    connection: Connection,
    now_ms: int,
    actor: Actor,
    action: str,
    *,
    entity: tuple[int, str] | None = None,
    project: str | None = None,
    run: str | None = None,
    target: str | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    outcome: Literal["ok", "denied"] = "ok",
) -> None:
    """Add an event in the transaction of what it reports.

    Args:
        entity: id and name of the team or user that it is about, or whose project or run it is.
        project, run: the project's name and the run id.
        target: the user, role or key that was changed.
    """
    row = {
        "time_ms": now_ms,
        "action": action,
        "outcome": outcome,
        "actor_kind": actor.kind,
        "actor_id": actor.id,
        "actor_name": actor.name,
        "via": actor.via,
        "key_public_id": actor.key_public_id,
        "ip": actor.ip,
        "agent": actor.agent,
        "request_id": actor.request_id,
        "entity_id": entity and entity[0],
        "entity": entity and entity[1],
        "project": project,
        "run": run,
        "target": target,
        "before": None if before is None else json.dumps(before),
        "after": None if after is None else json.dumps(after),
    }
    connection.execute(insert(audit_event).values(row))


def host_of(url: str) -> str:
    """Return the host of a URL, with its port: the rest may have a token in it."""
    return _HOST.sub(r"\1", url)


def event_as_dict(event: AuditEvent) -> dict[str, Any]:
    """Return an event as it is sent elsewhere, with internal ids: names may be given again."""
    return {name: getattr(event, name) for name in AuditEvent.__dataclass_fields__}


def anonymise_user(
    connection: Connection, user_id: int, owner: tuple[int, str], addresses: Sequence[str]
) -> None:
    """Replace the name, the addresses and the origin of a user by `deleted-user-ID`. What was done stays.

    Args:
        owner: the id and name of the user's own space.
    """
    pseudonym, names = f"deleted-user-{user_id}", (owner[1], *addresses)
    column = audit_event.c
    by_user = (column.actor_kind == "user") & (column.actor_id == user_id)
    # Before an account is known, as at a failed sign-in, the name is what was typed.
    by_name = (column.actor_kind == "anonymous") & column.actor_name.in_(names)
    about = (column.actor_kind == "anonymous") & column.target.in_(names)
    for which, values in (
        (by_user | by_name, {"actor_name": pseudonym, "ip": None, "agent": None}),
        (about, {"ip": None, "agent": None}),
        (column.entity_id == owner[0], {"entity": pseudonym}),
        (column.target.in_(names), {"target": pseudonym}),
    ):
        connection.execute(update(audit_event).where(which).values(values))
    for body in (column.before, column.after):
        for name in names:
            written = json.dumps(name)
            changed = {body.name: func.replace(body, written, json.dumps(pseudonym))}
            mentions = body.contains(written, autoescape=True)
            connection.execute(update(audit_event).where(mentions).values(changed))


class AuditTable(StoredTable):
    """The audit log."""

    def record(self, now_ms: int, actor: Actor, action: str, **about: Any) -> None:
        """Add an event that belongs to no change, such as a failed sign-in. Arguments as of `record`."""
        self._database.write(lambda connection: record(connection, now_ms, actor, action, **about))

    def page(self, audit_filter: AuditFilter, limit: int = 100) -> list[AuditEvent]:
        """Return the newest events that fit, at most `limit` (of 1000); continue with `before_id`."""
        statement = select(audit_event).where(*_conditions(audit_filter)).order_by(audit_event.c.id.desc())
        with self._database.read() as connection:
            rows = connection.execute(statement.limit(min(limit, MAX_ROWS)))
            return [AuditEvent(**(row._asdict() | _bodies(row))) for row in rows]

    def count(self, audit_filter: AuditFilter) -> int:
        """Return how many events fit, whatever `before_id` is."""
        fitting = _conditions(replace(audit_filter, before_id=None))
        with self._database.read() as connection:
            count = select(func.count()).select_from(audit_event).where(*fitting)
            return int(connection.execute(count).scalar_one())

    def since(self, after_id: int, limit: int = MAX_ROWS) -> list[AuditEvent]:
        """Return the oldest events with higher ids, in the order of ids."""
        newer = select(audit_event).where(audit_event.c.id > after_id).order_by(audit_event.c.id)
        with self._database.read() as connection:
            rows = connection.execute(newer.limit(min(limit, MAX_ROWS)))
            return [AuditEvent(**(row._asdict() | _bodies(row))) for row in rows]

    def made_via(self, via: str, from_ms: int, after_id: int) -> list[AuditEvent]:
        """Return the oldest successful events since a time that were made this way, a page of them."""
        conditions = (
            audit_event.c.time_ms >= from_ms,
            audit_event.c.id > after_id,
            audit_event.c.via == via,
            audit_event.c.outcome == "ok",
        )
        statement = select(audit_event).where(*conditions).order_by(audit_event.c.id).limit(MAX_ROWS)
        with self._database.read() as connection:
            return [AuditEvent(**(row._asdict() | _bodies(row))) for row in connection.execute(statement)]

    def with_ids(self, ids: Collection[int]) -> list[AuditEvent]:
        """Return those of the events with these ids that exist, in the order of ids."""
        if not ids:
            return []
        with self._database.read() as connection:
            chosen = select(audit_event).where(among(connection, audit_event.c.id, ids))
            rows = connection.execute(chosen.order_by(audit_event.c.id))
            return [AuditEvent(**(row._asdict() | _bodies(row))) for row in rows]

    def count_since(self, after_id: int) -> int:
        """Return how many events have higher ids."""
        newer = select(func.count()).select_from(audit_event).where(audit_event.c.id > after_id)
        with self._database.read() as connection:
            return int(connection.execute(newer).scalar_one())

    def newest_id(self) -> int:
        """Return the id of the newest event; 0 if there is none."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.max(audit_event.c.id))).scalar() or 0)

    def purge(self, before_ms: int) -> int:
        """Remove events older than the retention; returns how many."""
        old = delete(audit_event).where(audit_event.c.time_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def _bodies(row: Any) -> dict[str, Any]:
    return {
        name: stored_object(body, f"the audit event {row.id}") if (body := getattr(row, name)) else None
        for name in ("before", "after")
    }


def _conditions(audit_filter: AuditFilter) -> list[ColumnElement[bool]]:
    column = audit_event.c
    conditions = [
        column[name] == (plain_text(value) if isinstance(value, str) else value)
        for name, value in (
            ("actor_id", audit_filter.actor_id),
            ("actor_name", audit_filter.actor),
            ("entity_id", audit_filter.entity_id),
            ("entity", audit_filter.entity),
            ("project", audit_filter.project),
            ("run", audit_filter.run),
            ("outcome", audit_filter.outcome),
            ("target", audit_filter.target),
            ("key_public_id", audit_filter.key_public_id),
        )
        if value is not None
    ]
    if audit_filter.of_user is not None:
        user_id, entity_id = audit_filter.of_user
        did = (column.actor_kind == "user") & (column.actor_id == user_id)
        conditions.append(did | (column.entity_id == entity_id))
    if audit_filter.action is not None and audit_filter.action.endswith("*"):
        first = plain_text(audit_filter.action[:-1])
        conditions += [column.action >= first, column.action <= first + LAST_CHARACTER]
    elif audit_filter.action is not None:
        conditions.append(column.action == plain_text(audit_filter.action))
    if audit_filter.from_ms is not None:
        conditions.append(column.time_ms >= audit_filter.from_ms)
    if audit_filter.until_ms is not None:
        conditions.append(column.time_ms < audit_filter.until_ms)
    if audit_filter.before_id is not None:
        conditions.append(column.id < audit_filter.before_id)
    return conditions
