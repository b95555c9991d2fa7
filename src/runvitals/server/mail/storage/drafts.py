"""Drafts: mail about changes that were made where none can be sent, until a server takes it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.requests import mail_draft
from runvitals.server.mail.message import Message


@dataclass(frozen=True, slots=True)
class MailDraft:
    """A message and its recipient.

    Attributes:
        time_zone: of times in the text; None: as the organisation set it.
    """

    id: int
    address: str
    message: Message
    time_zone: str | None
    created_ms: int


class MailDraftTable(StoredTable):
    """The table of drafts, to which `Notices` can send. They are not encrypted, so none may hold a secret."""

    @property
    def configured(self) -> bool:
        """True: whether mail is sent is decided by the server that takes a draft."""
        return True

    def send(
        self,
        message: Message,
        address: str,
        now_ms: int,
        *,
        once_key: str | None = None,
        time_zone: str | None = None,
    ) -> bool:
        """Keep a message until a server sends it, in the transaction of the change, if there is one.

        Returns False for a message whose link has a secret: whoever made the change passes the link on.

        Args:
            once_key: nothing: a change is drafted once.
        """
        if message.link is not None and "#" in message.link.path:
            return False
        values = {
            "address": address,
            "message": message.to_json(),
            "time_zone": time_zone,
            "created_ms": now_ms,
        }
        self._database.write(lambda connection: connection.execute(insert(mail_draft).values(values)))
        return True

    def all(self) -> list[MailDraft]:
        """Return the drafts that no server has taken yet, the oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(mail_draft).order_by(mail_draft.c.id)).all()
        return [
            MailDraft(row.id, row.address, Message.from_json(row.message), row.time_zone, row.created_ms)
            for row in rows
        ]

    def remove(self, draft_id: int) -> None:
        """Remove a draft that is in the queue now. Removing it twice has no effect."""
        mine = delete(mail_draft).where(mail_draft.c.id == draft_id)
        self._database.write(lambda connection: connection.execute(mine))

    def purge(self, before_ms: int) -> int:
        """Remove the drafts from before a time; returns how many."""
        old = delete(mail_draft).where(mail_draft.c.created_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)
