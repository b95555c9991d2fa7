"""The limit of messages that a team sends in an hour, so that one team floods nobody.

What is over it is held back: it stays in the history, and each receiver gets one summary at the end of the
hour. Nothing that acts on a run, such as `stop:12`, is a message.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Any, Final

from sqlalchemy import Connection, func, or_, select, update

from runvitals.model.durations import HOUR_MS
from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.alerts import notification
from runvitals.server.events.outbox import LIMITED, Notification, add

HELD_BACK: Final = "held back: "
"""The beginning of the error of each message that was held back."""
_MESSAGES: Final = ("user:", "user-slack:", "member:", "slack:", "webhook:", "apprise:")
_MAX_TITLES: Final = 20
_row = notification.c


class MessageLimitTable(StoredTable):
    """Holds back messages of teams that send too many."""

    def hold_back(self, now_ms: int, most: int | None) -> int:
        """Hold back what is over the limit now, and write the summaries that are due.

        Args:
            most: messages of a team in an hour; None: no limit.

        Returns:
            How many messages were held back.
        """
        hour_ms = now_ms - now_ms % HOUR_MS
        with self._database.read() as connection:
            summaries = connection.execute(select(_row.id).where(*_empty_summaries(now_ms))).first()
            over = {} if most is None else _over(connection, now_ms, hour_ms, most)
        if summaries is None and not over:
            return 0

        def work(connection: Connection) -> int:
            count = 0
            for team_id in sorted(over):
                assert most is not None
                count += _hold_team(connection, team_id, now_ms, most)
            _write_summaries(connection, now_ms)
            return count

        return self._database.write(work)


def _due(now_ms: int) -> tuple[Any, ...]:
    """Return the messages that may be sent now; those of an attempt that is under way are not."""
    return (_row.state == "pending", _row.next_ms <= now_ms, *_of_teams())


def _was_sent(since_ms: int) -> tuple[Any, ...]:
    return (_row.ended_ms >= since_ms, _row.state == "sent", *_of_teams())


def _of_teams() -> tuple[Any, ...]:
    is_message = or_(*(_row.target.startswith(prefix) for prefix in _MESSAGES))
    return (_row.team_id.is_not(None), _row.kind != LIMITED, is_message)


def _over(connection: Connection, now_ms: int, hour_ms: int, most: int) -> dict[int, int]:
    """By team that would be over the limit, how many messages it may still send."""
    counted = select(_row.team_id, func.count()).group_by(_row.team_id)
    waiting: dict[int, int] = dict(connection.execute(counted.where(*_due(now_ms))).all())
    if not waiting:
        return {}
    sent: dict[int, int] = dict(connection.execute(counted.where(*_was_sent(hour_ms))).all())
    messages_left = {team_id: max(0, most - sent.get(team_id, 0)) for team_id in waiting}
    return {
        team_id: messages_left[team_id]
        for team_id, count in waiting.items()
        if count > messages_left[team_id]
    }


def _hold_team(connection: Connection, team_id: int, now_ms: int, most: int) -> int:
    """Hold back what a team may not send any more in this hour, and have each receiver told."""
    hour_ms = now_ms - now_ms % HOUR_MS
    messages_left = _over(connection, now_ms, hour_ms, most).get(team_id)  # as it is in this transaction
    if messages_left is None:
        return 0
    waiting = select(_row.id, _row.target).where(*_due(now_ms), _row.team_id == team_id).order_by(_row.id)
    rows = list(connection.execute(waiting.offset(messages_left)))
    text = f"{HELD_BACK}the team had sent {most} messages in this hour; a summary says so"
    ended = {"state": "dropped", "ended_ms": now_ms, "error": text}
    for first in range(0, len(rows), 500):
        ids = [number for number, _ in rows[first : first + 500]]
        connection.execute(update(notification).where(_row.id.in_(ids)).values(ended))
    for target in sorted({target for _, target in rows}):
        _announce(connection, team_id, target, hour_ms)
    return len(rows)


def _announce(connection: Connection, team_id: int, target: str, hour_ms: int) -> None:
    """Put an empty summary into the outbox, for the end of the hour."""
    subject = f"limit:{team_id}:{hour_ms}"
    payload = {"level": "warning"}
    add(
        connection,
        Notification(f"{subject}:{target}", LIMITED, target, subject, "", payload, hour_ms, team_id),
    )
    at_its_end = update(notification).where(_row.dedupe_key == f"{subject}:{target}", _row.tries == 0)
    connection.execute(at_its_end.values(next_ms=hour_ms + HOUR_MS))


def _empty_summaries(now_ms: int) -> tuple[Any, ...]:
    return (_row.kind == LIMITED, _row.state == "pending", _row.next_ms <= now_ms, _row.text == "")


def _write_summaries(connection: Connection, now_ms: int) -> None:
    statement = select(_row.id, _row.team_id, _row.target, _row.created_ms).where(*_empty_summaries(now_ms))
    for number, team_id, target, hour_ms in list(connection.execute(statement)):
        text = _summary(connection, team_id, target, hour_ms)
        connection.execute(update(notification).where(_row.id == number).values(text=text))


def _summary(connection: Connection, team_id: int, target: str, hour_ms: int) -> str:
    """Return a text about what one receiver did not get in an hour: each title, and how often."""
    team = connection.execute(select(entity.c.name).where(entity.c.id == team_id)).scalar() or "deleted"
    statement = select(_row.text).where(
        _row.team_id == team_id,
        _row.ended_ms.between(hour_ms, hour_ms + HOUR_MS - 1),
        _row.target == target,
        _row.state == "dropped",
        _row.error.startswith(HELD_BACK),
    )
    titles = Counter(text.partition("\n")[0] for (text,) in connection.execute(statement.order_by(_row.id)))
    lines = [f"{title} ({count} times)" if count > 1 else title for title, count in titles.most_common()]
    if len(lines) > _MAX_TITLES:
        lines[_MAX_TITLES:] = [f"… and {len(lines) - _MAX_TITLES} others"]
    start, end = (
        datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%H:%M")
        for time_ms in (hour_ms, hour_ms + HOUR_MS)
    )
    count = titles.total()
    noun = "message was" if count == 1 else "messages were"
    about = (
        f"From {start} to {end} UTC the team sent as many messages as it may in an hour. Its history of "
        "notifications has all of them, and can send them again."
    )
    return "\n\n".join([f"[{team}] {count} {noun} held back", about, *lines])
