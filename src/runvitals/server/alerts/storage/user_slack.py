"""The channels in which Slack tells users: an incoming webhook each."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from runvitals.server.database.database import Database, put_rows
from runvitals.server.database.tables.alerts import user_slack
from runvitals.server.events.outbox import Notification, add

_row = user_slack.c


@dataclass(frozen=True, slots=True)
class UserSlackRow:
    """The channel of a user, without its URL.

    Attributes:
        shown: what of the URL may be read.
        disabled_ms: since when Slack does not accept it; None: it does.
    """

    shown: str
    created_ms: int
    disabled_ms: int | None


class UserSlackTable:
    """The table of users' channels."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, user_id: int) -> UserSlackRow | None:
        """The channel of a user; None if there is none."""
        columns = [_row[name] for name in UserSlackRow.__dataclass_fields__]
        with self._database.read() as connection:
            found = connection.execute(select(*columns).where(_row.user_id == user_id)).first()
        return None if found is None else UserSlackRow(**found._asdict())

    def sealed(self, user_id: int) -> bytes | None:
        """The encrypted URL of the channel in use; None if there is none."""
        mine = select(_row.sealed).where(_row.user_id == user_id, _row.disabled_ms.is_(None))
        with self._database.read() as connection:
            found: bytes | None = connection.execute(mine).scalar()
        return found

    def put(self, user_id: int, sealed: bytes, shown: str, now_ms: int) -> None:
        """Set the channel of a user, in place of the one before."""
        row = {
            "user_id": user_id,
            "sealed": sealed,
            "shown": shown,
            "created_ms": now_ms,
            "disabled_ms": None,
        }
        self._database.write(lambda connection: put_rows(connection, user_slack, [row]))

    def remove(self, user_id: int) -> None:
        """Forget the channel of a user."""
        mine = delete(user_slack).where(_row.user_id == user_id)
        self._database.write(lambda connection: connection.execute(mine))

    def disable(self, user_id: int, sealed: bytes, now_ms: int) -> None:
        """Stop using a channel that Slack does not accept, and tell its user by mail.

        Args:
            sealed: the URL that was tried: if it was replaced meanwhile, nothing changes.
        """
        used = update(user_slack).where(_row.user_id == user_id, _row.disabled_ms.is_(None))
        change = used.where(_row.sealed == sealed).values(disabled_ms=now_ms)

        def work(connection: Connection) -> None:
            if connection.execute(change).rowcount:
                add(connection, _disabled(user_id, now_ms))

        self._database.write(work)


def _disabled(user_id: int, now_ms: int) -> Notification:
    text = (
        "Slack no longer accepts your messages\n"
        "The webhook of your channel was removed, or the channel is archived. Slack tells you nothing more. "
        "Connect a channel again in your settings."
    )
    key, target = f"slack.disabled:user:{user_id}:{now_ms}", f"user:{user_id}"
    return Notification(key, "slack.disabled", target, f"user-slack:{user_id}", text, {}, now_ms)
