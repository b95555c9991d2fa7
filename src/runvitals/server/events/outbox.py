"""The outbox: notifications, from the transaction of what they report until they have arrived.

A row is written together with what caused it, so that neither exists without the other. Any number of servers
may deliver from one outbox: `claim` gives a row to one of them, for a time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, in_transaction, insert
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.alerts import notification
from runvitals.server.database.tables.content import outgoing_mail
from runvitals.store.errors import NotFound

GIVE_UP_MS: Final = DAY_MS
KEPT_MS: Final = 30 * DAY_MS
LEASE_MS: Final = MINUTE_MS
"""Longer than an attempt takes. After this time, a notification whose server died is sent again."""
TEAM_A_MINUTE: Final = 20
"""Deliveries of one team's automations; others wait."""
LIMITED: Final = "team.limited"
"""The kind of summaries of what was held back (`message_limit.py`)."""
MAX_TEXT: Final = 16 * 1024
_MAX_ERROR: Final = 500
_MAX_ANSWER: Final = 2048

State = Literal["pending", "sent", "failed", "dropped"]
_row = notification.c


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification of one receiver, which gets it once.

    Attributes:
        dedupe_key: says what goes to whom. A notification is not added again with the same key within a
            month, whoever adds it.
        kind: what it reports, such as `run.crashed`.
        target: where it goes: `user:7` by mail, `user-slack:7`, and of a team `slack:3`, `webhook:3` and
            `apprise:3`; `stop:12`, `tag:12` and `command:12` act on the run with
            this id.
        subject: what it is about, such as `run:12`. Notifications of a target about one subject arrive in
            order.
        text: plain text. Its first line is the title; empty lines separate paragraphs.
        payload: more about it, as JSON: `path` is where its link leads on this server and `link` the text of
            the link; `level` is `info`, `warning` or `error`; `values` are those of a payload template.
        team_id: the team whose administrators see whether it arrived.
        automation_id: the automation that caused it.
        due_ms: when it is sent; None: at once.
    """

    dedupe_key: str
    kind: str
    target: str
    subject: str
    text: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    created_ms: int = 0
    team_id: int | None = None
    automation_id: int | None = None
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StoredNotification:
    """A notification of the outbox.

    Attributes:
        tries: attempts so far.
        status, answer: what the receiver answered last.
        error: why the last attempt failed.
        ended_ms: when it arrived or was given up.
    """

    id: int
    dedupe_key: str
    kind: str
    target: str
    subject: str
    text: str
    payload: Mapping[str, Any]
    team_id: int | None
    automation_id: int | None
    created_ms: int
    next_ms: int
    give_up_ms: int
    tries: int
    state: State
    status: int | None
    answer: str | None
    error: str | None
    ended_ms: int | None


@dataclass(frozen=True, slots=True)
class ChannelResponse:
    """A receiver's response: its status, if it speaks HTTP, and the beginning of its text."""

    status: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxLength:
    """How many notifications wait, and since when the oldest one does."""

    waiting: int
    oldest_ms: int | None


def add(connection: Connection, new: Notification) -> bool:
    """Put a notification into the outbox, in the transaction of what it reports.

    Returns whether it is new: False if there is one with its `dedupe_key`.

    Example:
        >>> crashed = Notification("run:12:1:crashed:user:7", "run.crashed", "user:7", "run:12",
        ...     "[vision/digits] otter-1 crashed", {"path": "/vision/digits/runs/otter-1"}, now_ms)
        >>> add(connection, crashed)
        True
    """
    values = {
        "dedupe_key": plain_text(new.dedupe_key),
        "kind": new.kind,
        "target": new.target,
        "subject": plain_text(new.subject),
        "text": plain_text(new.text[:MAX_TEXT]),
        "payload": json.dumps(new.payload),
        "team_id": new.team_id,
        "automation_id": new.automation_id,
        "created_ms": new.created_ms,
        "next_ms": new.created_ms if new.due_ms is None else new.due_ms,
        "give_up_ms": (new.due_ms or new.created_ms) + GIVE_UP_MS,
        "tries": 0,
        "state": "pending",
    }
    added = insert(connection, notification).values(values)
    once = added.on_conflict_do_nothing(index_elements=["dedupe_key"])
    return connection.execute(once.returning(_row.id)).first() is not None


class OutboxTable(StoredTable):
    """The table of notifications."""

    add = staticmethod(add)

    def cap_waiting(self, now_ms: int) -> None:
        """Send at once what waits, here and in the queue of mail, for a time that a wrong clock has set."""

        def work(connection: Connection) -> None:
            for table, state in ((notification, "pending"), (outgoing_mail, "waiting")):
                wrong = or_(
                    table.c.created_ms > now_ms + HOUR_MS, table.c.next_ms > table.c.give_up_ms + HOUR_MS
                )
                capped = update(table).where(table.c.state == state, wrong)
                connection.execute(
                    capped.values(created_ms=now_ms, next_ms=now_ms, give_up_ms=now_ms + GIVE_UP_MS)
                )

        self._database.write(work)

    def is_any_due(self, now_ms: int) -> bool:
        """Return whether `due` can return anything, in a tenth of its time: it is asked every second."""
        waiting = select(_row.id).where(_row.state == "pending", _row.next_ms <= now_ms).limit(1)
        with self._database.read() as connection:
            return connection.execute(waiting).first() is not None

    def due(self, now_ms: int, limit: int = 50) -> list[StoredNotification]:
        """Return the notifications to send now.

        There is at most one to each target, so that a slow one delays no other.

        One that waits for an earlier one about its subject, or whose team has reached its limit of deliveries
        a minute, is not due.
        """
        earlier = notification.alias()
        same = and_(
            earlier.c.state == "pending",
            earlier.c.target == _row.target,
            earlier.c.subject == _row.subject,
            earlier.c.id < _row.id,
        )
        first = select(func.min(_row.id)).where(
            _row.state == "pending", _row.next_ms <= now_ms, ~exists().where(same)
        )
        minute = (notification.c.ended_ms > now_ms - MINUTE_MS, _row.automation_id.is_not(None))
        counted = select(_row.team_id, func.count()).where(*minute).group_by(_row.team_id)
        with self._database.read() as connection:
            counts: dict[int | None, int] = dict(connection.execute(counted).all())
            full = [team for team, count in counts.items() if count >= TEAM_A_MINUTE]
            if full:
                first = first.where(or_(_row.automation_id.is_(None), _row.team_id.not_in(full)))
            ids = first.group_by(_row.target).order_by(func.min(_row.id)).limit(limit)
            due_ids = list(connection.execute(ids).scalars())
            notifications = _read(connection, _row.id.in_(due_ids))
        return _within_limit(notifications, counts)

    def claim(self, due: StoredNotification, now_ms: int) -> bool:
        """Begin an attempt; False if another server has begun one, or has sent it."""
        free = (_row.id == due.id, _row.state == "pending", _row.next_ms == due.next_ms)
        values = {"next_ms": now_ms + LEASE_MS, "tries": due.tries + 1}
        claim = update(notification).where(*free, _row.tries == due.tries).values(values)
        return bool(self._database.write(lambda connection: connection.execute(claim).rowcount))

    def end(
        self,
        due: StoredNotification,
        state: Literal["sent", "failed", "dropped"],
        now_ms: int,
        response: ChannelResponse | None = None,
        error: str | None = None,
    ) -> None:
        """It has arrived, or never will."""
        values = {"state": state, "ended_ms": now_ms, **_result(response, error)}
        self._set(due, values)

    def postpone(
        self,
        due: StoredNotification,
        next_ms: int,
        response: ChannelResponse | None,
        error: str,
    ) -> None:
        """Try again later."""
        self._set(due, {"next_ms": next_ms, **_result(response, error)})

    @in_transaction
    def send_again(
        self, connection: Connection, team_id: int | None, notification_id: int, now_ms: int
    ) -> StoredNotification:
        """Put a notification that has ended into the outbox again.

        Args:
            team_id: only one of this team; None: of anybody.

        Raises:
            NotFound: the team has no such notification.
            ValueError: it is still being sent.
        """
        mine = and_(_row.id == notification_id, *([] if team_id is None else [_row.team_id == team_id]))
        fresh = {"state": "pending", "tries": 0, "next_ms": now_ms, "give_up_ms": now_ms + GIVE_UP_MS}
        empty = {"ended_ms": None, "status": None, "answer": None, "error": None}
        mail = outgoing_mail.c
        statement = delete(outgoing_mail).where(
            mail.once_key == mail_key(notification_id), mail.state != "waiting"
        )
        if connection.execute(select(_row.id).where(mine)).first() is not None:
            connection.execute(statement)
        again = update(notification).where(mine, _row.state != "pending").values(**fresh, **empty)
        changed = connection.execute(again).rowcount
        rows = _read(connection, mine)
        if not rows:
            raise NotFound("there is no such notification")
        if not changed:
            raise ValueError("it is still being sent")
        return rows[0]

    def of_team(
        self, team_id: int, limit: int, before: int | None = None, automation_id: int | None = None
    ) -> list[StoredNotification]:
        """Return the newest notifications of a team, the newest first.

        The state of a mail is that of the queue of mail.

        Args:
            before: only those with a smaller id.
            automation_id: only those of this automation.
        """
        conditions = [_row.team_id == team_id]
        if before is not None:
            conditions.append(_row.id < before)
        if automation_id is not None:
            conditions.append(_row.automation_id == automation_id)
        with self._database.read() as connection:
            return _read(connection, *conditions, newest=limit)

    def count_of_team(self, team_id: int, automation_id: int | None = None) -> int:
        """Return how many notifications of a team, or of one of its automations, are kept."""
        counted = select(func.count()).select_from(notification).where(_row.team_id == team_id)
        if automation_id is not None:
            counted = counted.where(_row.automation_id == automation_id)
        with self._database.read() as connection:
            return int(connection.execute(counted).scalar_one())

    def host_commands(self) -> dict[int, list[tuple[int, str]]]:
        """Return the commands that hosts are asked to run.

        They are by run; each is the id of its notification and the command.
        """
        statement = select(_row.id, _row.target, _row.payload).where(
            _row.state == "pending", _begins_with(_row.target, "command:")
        )
        commands: dict[int, list[tuple[int, str]]] = {}
        with self._database.read() as connection:
            for number, target, text in connection.execute(statement.order_by(_row.id)):
                payload = stored_object(text, f"the notification {number}")
                if payload.get("allowed"):
                    run_id = int(target.partition(":")[2])
                    commands.setdefault(run_id, []).append((number, payload["command"]))
        return commands

    def set_payload(self, due: StoredNotification, payload: Mapping[str, Any]) -> None:
        """Replace what is known about a notification that is being sent."""
        self._set(due, {"payload": json.dumps(payload)})

    def beginning_with(self, prefixes: Collection[str]) -> list[StoredNotification]:
        """Return the notifications whose `dedupe_key` begins with one of these texts, the oldest first."""
        if not prefixes:
            return []
        ranges = [_begins_with(_row.dedupe_key, prefix) for prefix in prefixes]
        with self._database.read() as connection:
            return _read(connection, or_(*ranges))

    def length(self) -> OutboxLength:
        """Return how long the queue is.

        Summaries of limits, which wait for the end of an hour, have no text yet.
        """
        waiting = select(func.count(), func.min(_row.created_ms)).where(
            _row.state == "pending", or_(_row.kind != LIMITED, _row.text != "")
        )
        with self._database.read() as connection:
            number, oldest_ms = connection.execute(waiting).one()
        return OutboxLength(number, oldest_ms)

    def purge(self, before_ms: int) -> int:
        """Remove notifications that ended before this time; returns how many."""
        old = delete(notification).where(_row.ended_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)

    def _set(self, due: StoredNotification, values: Mapping[str, Any]) -> None:
        change = update(notification).where(_row.id == due.id, _row.state == "pending").values(values)
        self._database.write(lambda connection: connection.execute(change))


def mail_key(notification_id: int) -> str:
    """Return the `once_key` of the mail of a notification."""
    return f"{_MAIL}{notification_id}"


_MAIL: Final = "notification:"
_MAIL_STATES: Final = {"waiting": "pending", "sent": "sent", "failed": "failed"}


def _read(connection: Connection, *conditions: Any, newest: int | None = None) -> list[StoredNotification]:
    mail = outgoing_mail.c
    statement = (
        select(notification, mail.state.label("mail_state"), mail.error.label("mail_error"))
        .outerjoin(outgoing_mail, mail.once_key == literal(_MAIL) + cast(_row.id, Text))
        .where(*conditions)
        .order_by(_row.id if newest is None else _row.id.desc())
        .limit(newest)
    )
    notifications = []
    for row in connection.execute(statement):
        values = row._asdict()
        mail_state, mail_error = values.pop("mail_state"), values.pop("mail_error")
        if values["state"] == "sent" and mail_state is not None:
            values |= {"state": _MAIL_STATES.get(mail_state, mail_state), "error": mail_error}
        notifications.append(
            StoredNotification(
                **{**values, "payload": stored_object(row.payload, f"the notification {row.id}")}
            )
        )
    return notifications


def _begins_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    r"""Return a range of an index; `\x7f` comes after every character of a target.

    PostgreSQL allows no collation in BETWEEN.
    """
    return and_(column >= prefix, column <= f"{prefix}\x7f")


def _within_limit(
    notifications: list[StoredNotification], counts: Mapping[int | None, int]
) -> list[StoredNotification]:
    """Return those with which their teams stay within the limit of deliveries a minute."""
    remaining = {team: TEAM_A_MINUTE - count for team, count in counts.items()}
    allowed = []
    for due in notifications:
        if due.automation_id is not None:
            remaining[due.team_id] = remaining.get(due.team_id, TEAM_A_MINUTE) - 1
            if remaining[due.team_id] < 0:
                continue
        allowed.append(due)
    return allowed


def _result(response: ChannelResponse | None, error: str | None) -> dict[str, Any]:
    response = response or ChannelResponse()
    return {
        "status": response.status,
        "answer": None if response.text is None else plain_text(response.text[:_MAX_ANSWER]),
        "error": None if error is None else plain_text(error[:_MAX_ERROR]),
    }
