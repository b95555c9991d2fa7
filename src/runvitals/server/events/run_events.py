"""Events of runs of which somebody may want to be notified, until it is decided who is.

An event is written in the transaction of what caused it: the end of a run with its last writer's `end`
record, an alert with its record. Silence causes no transaction, so `note_lost` and `note_back` look for it.

(run, life, event, key) is unique. A resumed run has another **life**: the id of the newest of the writers
that determine its state.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sqlalchemy import Connection, Text, and_, cast, delete, exists, func, select, update

from runvitals.model.state import LOST
from runvitals.server.database.database import StoredTable, among, in_transaction, insert
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.events import run_alert_event, waiting_alert
from runvitals.server.database.tables.runs import run, writer
from runvitals.server.events.outbox import Notification
from runvitals.server.events.outbox import add as add_notification

EventKind = Literal["finished", "failed", "crashed", "lost", "back", "custom", "finding"]
NEW, HELD, DONE = "new", "held", "done"
_TOLD_ENDINGS: Final = ("finished", "failed", "crashed")
KEPT_MS: Final = 60 * 86_400_000
"""Longer than anything that is done with an event."""
_MOST_EVENTS: Final = 200
_FORGOTTEN_MS: Final = 7 * 86_400_000
"""A run that was lost for longer is not looked for any more."""
_row = run_alert_event.c


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened to a run.

    Args:
        key: tells apart events of one kind in one life: of an alert, its writer and number.
        level: info, warning or error.
        data: of an alert, its title and text; of a firing, what the rule says.
    """

    run_id: int
    life: int
    event: EventKind
    time_ms: int
    key: str = ""
    level: str = "info"
    data: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0


@dataclass(frozen=True, slots=True)
class WaitingAlert:
    """An alert that a user gets later, by `channel`. `run_id`: None if the run was purged."""

    user_id: int
    channel: str
    event_id: int
    due_ms: int
    subject: str
    body: str
    id: int = 0
    run_id: int | None = None


def add_events(connection: Connection, events: Sequence[RunEvent]) -> None:
    """Write events, in the transaction of what caused them; those that are there stay as they are."""
    rows = [
        {
            "run_id": event.run_id,
            "life": event.life,
            "event": event.event,
            "key": event.key,
            "level": event.level,
            "time_ms": event.time_ms,
            "data": json.dumps(event.data),
            "state": NEW,
        }
        for event in events
    ]
    if rows:
        connection.execute(insert(connection, run_alert_event).on_conflict_do_nothing(), rows)


def add_endings(connection: Connection, ended: Iterable[tuple[int, int, str, int]]) -> None:
    """Write the ends of runs: for each its id, life, state and time.

    States that nobody is notified are left out.
    """
    add_events(
        connection,
        [
            RunEvent(run_id, life, state, time_ms, level="info" if state == "finished" else "error")  # type: ignore[arg-type]
            for run_id, life, state, time_ms in ended
            if state in _TOLD_ENDINGS
        ],
    )


class RunEventTable(StoredTable):
    """The table of events."""

    def add(self, events: Sequence[RunEvent]) -> None:
        """Write events; those that are there stay as they are."""
        self._database.write(lambda connection: add_events(connection, events))

    def note_lost(self, silent_since_ms: int, not_before_ms: int, now_ms: int) -> int:
        """Write that runs are lost that have been silent since a time; returns how many.

        Args:
            not_before_ms: runs that fell silent earlier are ignored.
        """
        life = select(func.max(writer.c.id)).where(writer.c.run_id == run.c.id).scalar_subquery()
        key = cast(run.c.alive_until_ms, Text)
        is_noted = and_(_row.run_id == run.c.id, _row.event == "lost", _row.key == key)
        silent = (
            select(run.c.id, life, run.c.alive_until_ms)
            .where(
                run.c.alive_until_ms.between(not_before_ms, silent_since_ms),
                run.c.settled_state == LOST,
                run.c.deleted_ms.is_(None),
                ~exists().where(is_noted),
            )
            .limit(1000)
        )
        with self._database.read() as connection:
            rows = [tuple(row) for row in connection.execute(silent)]
        self.add(
            [
                RunEvent(run_id, newest or 0, "lost", now_ms, str(until_ms), "error", {"since_ms": until_ms})
                for run_id, newest, until_ms in rows
            ]
        )
        return len(rows)

    def note_back(self, now_ms: int) -> int:
        """Write that runs are back whose loss was written and that were heard of since; returns how many."""
        back = run_alert_event.alias()
        is_noted = and_(back.c.run_id == _row.run_id, back.c.event == "back", back.c.key == _row.key)
        heard = (
            select(_row.run_id, _row.life, _row.key)
            .join(run, run.c.id == _row.run_id)
            .where(
                _row.event == "lost",
                _row.time_ms > now_ms - _FORGOTTEN_MS,
                run.c.alive_until_ms >= now_ms,
                ~exists().where(is_noted),
            )
        )
        with self._database.read() as connection:
            rows = [tuple(row) for row in connection.execute(heard)]
        self.add([RunEvent(run_id, life, "back", now_ms, key) for run_id, life, key in rows])
        return len(rows)

    def in_state(self, state: str) -> list[RunEvent]:
        """Return events that are new, or held back, the oldest first."""
        statement = select(run_alert_event).where(_row.state == state).order_by(_row.id).limit(_MOST_EVENTS)
        with self._database.read() as connection:
            return [_event(values._asdict()) for values in connection.execute(statement)]

    def of_firings(self, run_ids: Collection[int], keys: Collection[str]) -> dict[tuple[int, str], int]:
        """Return the ids of the events of firings, by run and key."""
        statement = select(_row.run_id, _row.key, _row.id).where(_row.event == "finding")
        with self._database.read() as connection:
            mine = (among(connection, _row.run_id, run_ids), _row.key.in_(sorted(keys)))
            return {(row.run_id, row.key): row.id for row in connection.execute(statement.where(*mine))}

    def told_since(self, run_id: int, since_ms: int) -> list[RunEvent]:
        """Return the alerts of a run since a time that were told or are done with, the oldest first."""
        mine = (_row.run_id == run_id, _row.event == "custom", _row.state == DONE, _row.time_ms > since_ms)
        with self._database.read() as connection:
            rows = connection.execute(select(run_alert_event).where(*mine).order_by(_row.time_ms))
            return [_event(values._asdict()) for values in rows]

    def newest_told(self, run_id: int, limit: int) -> list[RunEvent]:
        """Return the newest alerts of a run that were told."""
        mine = (_row.run_id == run_id, _row.event == "custom", _row.state == DONE)
        statement = select(run_alert_event).where(*mine, _row.data.contains('"told_ms"'))
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(_row.id.desc()).limit(limit))
            return [_event(values._asdict()) for values in rows]

    @in_transaction
    def settle(
        self,
        connection: Connection,
        ids: Collection[int],
        state: str,
        notifications: Sequence[Notification] = (),
        waiting: Sequence[WaitingAlert] = (),
        note: Mapping[str, Any] | None = None,
    ) -> None:
        """Put what is notified into the outbox and mark the events, in one transaction.

        Args:
            note: added to the data of the events.
        """
        for notification in notifications:
            add_notification(connection, notification)
        rows = [
            {
                "user_id": later.user_id,
                "channel": later.channel,
                "event_id": later.event_id,
                "due_ms": later.due_ms,
                "subject": later.subject,
                "body": later.body,
            }
            for later in waiting
        ]
        if rows:
            connection.execute(insert(connection, waiting_alert).on_conflict_do_nothing(), rows)
        mine = among(connection, _row.id, ids)
        connection.execute(update(run_alert_event).where(mine).values(state=state))
        if note:
            for number, data in connection.execute(select(_row.id, _row.data).where(mine)).all():
                changed = json.dumps({**json.loads(data), **note})
                connection.execute(update(run_alert_event).where(_row.id == number).values(data=changed))

    def due(self, now_ms: int, limit: int = 1000) -> list[WaitingAlert]:
        """Return what waited for quiet hours to end or for a digest, and is due now."""
        statement = (
            select(waiting_alert, _row.run_id)
            .outerjoin(run_alert_event, _row.id == waiting_alert.c.event_id)
            .where(waiting_alert.c.due_ms <= now_ms)
        )
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(waiting_alert.c.id).limit(limit))
            return [WaitingAlert(**row._asdict()) for row in rows]

    @in_transaction
    def send_waiting(
        self, connection: Connection, ids: Collection[int], notification: Notification | None
    ) -> None:
        """Put what waited into the outbox, as one notification; None: nobody wants it any more.

        Does nothing if another server has sent a part of it meanwhile: what is left is found again.
        """
        mine = among(connection, waiting_alert.c.id, ids)
        locked = select(waiting_alert.c.id).where(mine).order_by(waiting_alert.c.id).with_for_update()
        if len(connection.execute(locked).all()) < len(ids):
            return
        connection.execute(delete(waiting_alert).where(mine))
        if notification is not None:
            add_notification(connection, notification)

    def forget(self, before_ms: int) -> int:
        """Remove events from before a time that are done with; returns how many."""
        old = delete(run_alert_event).where(_row.time_ms < before_ms, _row.state == DONE)
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def _event(values: dict[str, Any]) -> RunEvent:
    values.pop("state")
    return RunEvent(**{**values, "data": stored_object(values["data"], "an event of a run")})
