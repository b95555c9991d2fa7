"""The queue of mail. Rows survive restarts; any number of servers may send from one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, delete, func, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, in_transaction, insert
from runvitals.server.database.tables.accounts import email
from runvitals.server.database.tables.content import outgoing_mail

LEASE_MS = 10 * 60_000
"""After this time, a mail whose server died while sending it is sent again."""
ALERT: Final = "notification"
"""The kind of mails of alerts and automations, which others must not hold back."""
HELD_BACK: Final = "held back: "
"""What the error of a mail begins with that waits because the address got many."""
_MAX_ERROR = 500

_mail = outgoing_mail.c


@dataclass(frozen=True, slots=True)
class NewMail:
    """A mail for the queue.

    Attributes:
        sealed: subject and text, encrypted.
        discarded: it is never sent; the row is written so that an answer takes as long as if it were.
        once_key: a mail with a key that is in the queue already, or was sent in the last month, is not added.
    """

    message_id: str
    kind: str
    address: str
    address_key: str
    security: bool
    sealed: bytes
    created_ms: int
    give_up_ms: int
    discarded: bool = False
    once_key: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingMail:
    """A mail that is due. `tries`: attempts so far. `error`: why it waits, or what the last attempt said."""

    id: int
    message_id: str
    kind: str
    address: str
    address_key: str
    security: bool
    sealed: bytes
    created_ms: int
    tries: int
    error: str | None = None

    @property
    def held_back(self) -> bool:
        """Whether the mail waits because its address got many."""
        return self.error is not None and self.error.startswith(HELD_BACK)


@dataclass(frozen=True, slots=True)
class MailQueueLength:
    """The number of mails that wait, and since when the oldest one does."""

    waiting: int
    oldest_ms: int | None


def add_mail(connection: Connection, mail: NewMail) -> bool:
    """Put a mail into the queue, in the transaction of what it reports; False if its `once_key` is there."""
    values = {
        "message_id": mail.message_id,
        "once_key": mail.once_key,
        "kind": mail.kind,
        "address": mail.address,
        "address_key": mail.address_key,
        "security": mail.security,
        "sealed": None if mail.discarded else mail.sealed,
        "created_ms": mail.created_ms,
        "next_ms": mail.created_ms,
        "give_up_ms": mail.give_up_ms,
        "tries": 0,
        "state": "discarded" if mail.discarded else "waiting",
        "ended_ms": mail.created_ms if mail.discarded else None,
    }
    added = insert(connection, outgoing_mail).values(values)
    once = added.on_conflict_do_nothing(index_elements=["once_key"])
    return connection.execute(once.returning(_mail.id)).first() is not None


class OutgoingMailTable(StoredTable):
    """The queue of mail."""

    def add(self, mail: NewMail) -> bool:
        """Put a mail into the queue; False if its `once_key` is there."""
        return self._database.write(lambda connection: add_mail(connection, mail))

    def due(self, now_ms: int, limit: int = 50) -> list[WaitingMail]:
        """Mails to send now, the oldest first."""
        columns = [_mail[name] for name in WaitingMail.__dataclass_fields__]
        waiting = select(*columns).where(
            _mail.state == "waiting", _mail.next_ms <= now_ms, _mail.give_up_ms > now_ms
        )
        with self._database.read() as connection:
            rows = connection.execute(waiting.order_by(_mail.id).limit(limit))
            return [WaitingMail(**row._asdict()) for row in rows]

    def claim(self, mail: WaitingMail, now_ms: int) -> bool:
        """Begin an attempt; False if another server has begun one or has sent it."""
        free = (_mail.id == mail.id, _mail.state == "waiting", _mail.next_ms <= now_ms)
        values = {"next_ms": now_ms + LEASE_MS, "tries": mail.tries + 1}
        claim = update(outgoing_mail).where(*free, _mail.tries == mail.tries).values(values)
        return bool(self._database.write(lambda connection: connection.execute(claim).rowcount))

    def postpone(self, mail: WaitingMail, next_ms: int, *, error: str | None = None, tries: int) -> None:
        """Try again later. `tries`: attempts so far, without those that failed for another reason."""
        values = {"next_ms": next_ms, "tries": tries, "error": _shorten(error)}
        change = update(outgoing_mail).where(_mail.id == mail.id, _mail.state == "waiting").values(values)
        self._database.write(lambda connection: connection.execute(change))

    def held_back(self, like: WaitingMail, now_ms: int, limit: int) -> list[WaitingMail]:
        """Return the mails that are due after they were held back with this one, the oldest first."""
        columns = [_mail[name] for name in WaitingMail.__dataclass_fields__]
        same = (_mail.address_key == like.address_key, (_mail.kind == ALERT) == (like.kind == ALERT))
        due = (_mail.state == "waiting", _mail.next_ms <= now_ms, _mail.error.startswith(HELD_BACK))
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(*same, *due).order_by(_mail.id).limit(limit))
            return [WaitingMail(**row._asdict()) for row in rows]

    @in_transaction
    def mark_sent(
        self, connection: Connection, mail: WaitingMail, now_ms: int, *, message_id: str | None = None
    ) -> None:
        """The mail server has accepted it; its text is removed, and the address works.

        Args:
            message_id: of the mail that it was sent in, with others.
        """
        _end(connection, mail, "sent", None, now_ms)
        if message_id is not None:
            mine = update(outgoing_mail).where(_mail.id == mail.id)
            connection.execute(mine.values(message_id=message_id))
        works = update(email).where(email.c.address_key == mail.address_key)
        connection.execute(works.where(email.c.failing_since_ms.is_not(None)).values(failing_since_ms=None))

    @in_transaction
    def mark_failed(
        self, connection: Connection, mail: WaitingMail, error: str, now_ms: int, *, bad_address: bool
    ) -> None:
        """It will never arrive; its text is removed. `bad_address`: the mail server refused the address."""
        _end(connection, mail, "failed", error, now_ms)
        if bad_address:
            fails = update(email).where(email.c.address_key == mail.address_key)
            first = fails.where(email.c.failing_since_ms.is_(None))
            connection.execute(first.values(failing_since_ms=now_ms))

    def sent_since(self, like: WaitingMail, since_ms: int) -> list[int]:
        """Return when the mails were sent since a time that count with this one, in ascending order.

        Mails about security do not count.
        """
        same = (_mail.address_key == like.address_key, (_mail.kind == ALERT) == (like.kind == ALERT))
        sent = (_mail.state == "sent", _mail.ended_ms > since_ms, _mail.security.is_(False))
        ended_ms = func.max(_mail.ended_ms)
        times = select(ended_ms).where(*same, *sent).group_by(_mail.message_id).order_by(ended_ms)
        with self._database.read() as connection:
            return list(connection.execute(times).scalars())

    def give_up(self, now_ms: int) -> int:
        """End mails whose time is over; returns how many."""
        over = update(outgoing_mail).where(_mail.state == "waiting", _mail.give_up_ms <= now_ms)
        ended = over.values(state="failed", sealed=None, ended_ms=now_ms)
        return self._database.write(lambda connection: connection.execute(ended).rowcount)

    def length(self) -> MailQueueLength:
        """Return how long the queue is."""
        waiting = select(func.count(), func.min(_mail.created_ms)).where(_mail.state == "waiting")
        with self._database.read() as connection:
            number, oldest_ms = connection.execute(waiting).one()
        return MailQueueLength(number, oldest_ms)

    def purge(self, before_ms: int) -> int:
        """Remove mails that ended before this time; returns how many."""
        old = delete(outgoing_mail).where(_mail.ended_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def _end(
    connection: Connection,
    mail: WaitingMail,
    state: Literal["sent", "failed"],
    error: str | None,
    now_ms: int,
) -> None:
    values = {"state": state, "sealed": None, "ended_ms": now_ms, "error": _shorten(error)}
    connection.execute(update(outgoing_mail).where(_mail.id == mail.id).values(values))


def _shorten(error: str | None) -> str | None:
    return None if error is None else plain_text(error[:_MAX_ERROR])
