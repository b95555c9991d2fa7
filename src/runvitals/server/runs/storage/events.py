"""Events of runs: alerts, lost records, failed collectors, markers; and those added by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, func, insert, literal, select

from runvitals.base.json_codec import dumps
from runvitals.model.json_values import DAMAGED, damage_of
from runvitals.model.names import project_name, shorten
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.database.database import StoredTable, add_rows
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import api_key
from runvitals.server.database.tables.runs import event, run, writer
from runvitals.server.database.text import MAX_NAME, check_integers
from runvitals.server.events.run_events import RunEvent, add_events
from runvitals.server.runs.storage.event_authors import EventAuthors, read_authors
from runvitals.server.runs.storage.run_locks import lock_known_runs

ALERT: Final = "alert"
DELETED: Final = ("deleted", "Moved to the trash")
RESTORED: Final = ("restored", "Restored from the trash")
_EVENTS: Final = {
    "run.stop": ("stop_requested", "A stop was requested"),
    "run.update": ("edited", "Changed"),
    "run.set_author": ("edited", "Changed: author"),
    "run.move": ("moved", "Moved to"),
    "run.delete": DELETED,
    "run.restore": RESTORED,
}
"""Name and text of the event, by action of the audit log."""
_MAX_TITLE: Final = 200
_MAX_ALERT_TEXT: Final = 4000
_MAX_WAIT_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a run.

    Args:
        writer_id, seq: the writer and the number of its record: (writer, seq) is stored once, however often
            it is sent. Both None for events of the server itself.
        user_id, service_account_id: who made the change that the server reports. Read back as well for the
            events of a writer: whose key sent them.
        time_ms: ms UTC, by the writer's clock.
        level: info, warning or error.
        data: other facts, a JSON object.
        id: its id; 0 until it is stored.
    """

    run_id: int
    time_ms: int
    name: str
    level: str = "info"
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    writer_id: int | None = None
    seq: int | None = None
    id: int = 0
    user_id: int | None = None
    service_account_id: int | None = None

    def check(self) -> None:
        """Raise ValueError for data that is not valid JSON, or a number beyond 64 bits."""
        _row(self)


class EventTable(StoredTable):
    """The table of events.

    Example:
        >>> alert = StoredEvent(run_id, now_ms, "alert", text="loss is NaN", writer_id=17, seq=4)
        >>> metadata_store.events.add([alert])
        >>> [event.text for event in metadata_store.events.of_run(run_id)]
        ['loss is NaN']
    """

    def add(self, events: Sequence[StoredEvent]) -> None:
        """Store events, all or none; existing ones are left unchanged. Durable.

        Raises:
            ValueError: data that is not valid JSON, or a number beyond 64 bits.
            UnknownRun: a run that does not exist.
        """
        rows = [_row(event) for event in events]
        runs = {event.run_id for event in events}
        alerts = [_alert(event) for event in events if event.name == ALERT and event.writer_id is not None]
        if rows:
            self._database.write(lambda connection: _add(connection, runs, rows, alerts))

    def of_run(
        self, run_id: int, skip: int = 0, limit: int = 10_000, name: str | None = None
    ) -> list[StoredEvent]:
        """Return the newest events of a run, in order of time.

        Args:
            skip: how many of the newest to skip: those of previous pages.
            name: only events of this name.
        """
        statement = select(event, api_key.c.user_id, api_key.c.service_account_id)
        statement = _of_run(statement, run_id, name).outerjoin(writer, writer.c.id == event.c.writer_id)
        statement = statement.outerjoin(api_key, api_key.c.id == writer.c.api_key_id)
        statement = statement.order_by(event.c.time_ms.desc(), event.c.id.desc()).offset(skip).limit(limit)
        with self._database.read() as connection:
            rows = list(connection.execute(statement))
        return [_from_row(row) for row in reversed(rows)]

    def authors(self, events: Sequence[StoredEvent]) -> EventAuthors:
        """Return the users and service accounts that caused some events."""
        user_ids = {event.user_id for event in events if event.user_id is not None}
        account_ids = {event.service_account_id for event in events if event.service_account_id is not None}
        with self._database.read() as connection:
            return read_authors(connection, user_ids, account_ids)

    def count(self, run_id: int) -> int:
        """Return the number of events of a run."""
        with self._database.read() as connection:
            return int(connection.execute(_of_run(select(func.count()), run_id, None)).scalar_one())


def _from_row(row: Row[Any]) -> StoredEvent:
    sender = {"user_id": row.user_id, "service_account_id": row.service_account_id}
    data = stored_object(row.body, f"the event {row.id}")
    if (damage := damage_of(data)) is not None:
        data = {"name": DAMAGED, "level": "error", "text": damage}
    body = {**sender, **data}
    return StoredEvent(
        run_id=row.run_id, time_ms=row.time_ms, writer_id=row.writer_id, seq=row.seq, id=row.id, **body
    )


def _of_run(statement: Select[Any], run_id: int, name: str | None) -> Select[Any]:
    statement = statement.select_from(event).where(event.c.run_id == run_id)
    return statement if name is None else statement.where(event.c.name == name)


def _add(connection: Connection, runs: set[int], rows: list[dict[str, Any]], alerts: list[RunEvent]) -> None:
    lock_known_runs(connection, runs)
    add_rows(connection, event, rows)
    add_events(connection, alerts)


def _alert(event: StoredEvent) -> RunEvent:
    """Return an alert of a training, for those who want to be notified."""
    title = str(event.data.get("title") or "")[:_MAX_TITLE]
    data: dict[str, Any] = {"title": title, "text": event.text[:_MAX_ALERT_TEXT]}
    wait_s = event.data.get("wait_s")
    if isinstance(wait_s, (int, float)) and not isinstance(wait_s, bool) and wait_s == wait_s:  # not NaN
        data["wait_s"] = min(max(wait_s, 0), _MAX_WAIT_S)
    key = f"{event.writer_id}:{event.seq}"
    return RunEvent(event.run_id, 0, "custom", event.time_ms, key, event.level, data)


def add_event(connection: Connection, stored_event: StoredEvent) -> None:
    """Add an event of the server, in the transaction of what it reports. The run must exist."""
    add_rows(connection, event, [_row(stored_event)])


def add_to_runs(connection: Connection, which: ColumnElement[bool], stored_event: StoredEvent) -> None:
    """Add an event of the server to all runs that fit, in the transaction of what it reports."""
    values = {
        name: value for name, value in _row(stored_event).items() if value is not None and name != "run_id"
    }
    columns = [literal(value, event.c[name].type) for name, value in values.items()]
    chosen = select(run.c.id, *columns).where(which)
    connection.execute(insert(event).from_select(["run_id", *values], chosen))


def move_event(entity: str, project: str) -> tuple[str, str]:
    """Return the event of a run with a new place. The one before is not named: readers may not know it."""
    return "moved", f"Moved to {entity}/{project}"


def change_of_run(run_id: int, by: Actor, now_ms: int, name_and_text: tuple[str, str]) -> StoredEvent:
    """Return the event of a change, from its name and text."""
    name, text = name_and_text
    account_id = by.id if by.kind == "service_account" else None
    return StoredEvent(run_id, now_ms, name, text=text, user_id=by.user_id, service_account_id=account_id)


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


def tell_runs(
    connection: Connection, which: ColumnElement[bool], by: Actor, now_ms: int, name_and_text: tuple[str, str]
) -> None:
    """Add the event of a change to the runs that it concerned, in its transaction."""
    add_to_runs(connection, which, change_of_run(0, by, now_ms, name_and_text))


def _row(event: StoredEvent) -> dict[str, Any]:
    check_integers(f"event {event.name!r}", time_ms=event.time_ms, seq=event.seq)
    ids = {"user_id": event.user_id, "service_account_id": event.service_account_id}
    by = {name: number for name, number in ids.items() if number is not None}
    try:
        body = dumps({"name": event.name, "level": event.level, "text": event.text, "data": event.data} | by)
    except (TypeError, ValueError) as error:
        raise ValueError(f"event {event.name!r} of run {event.run_id} is not valid JSON: {error}") from None
    return {
        "run_id": event.run_id,
        "writer_id": event.writer_id,
        "seq": event.seq,
        "time_ms": event.time_ms,
        "level": shorten(event.level, MAX_NAME),
        "name": shorten(event.name, MAX_NAME),
        "body": body.decode("ascii"),
    }
