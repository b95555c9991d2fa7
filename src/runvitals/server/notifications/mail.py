"""Notifications by mail: they are passed to the mail queue, which has its own retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runvitals.mail.mailer import Mailer
from runvitals.mail.message import Link, Message, one_line
from runvitals.mail.notices import Notices
from runvitals.server.notifications.channel import NotDelivered, number_of, title_of
from runvitals.store.metadata.accounts.account_store import AccountStore
from runvitals.store.metadata.alerts.outbox import Answer, StoredNotification, mail_key

_KIND: Final = "notification"


class MailChannel:
    """Mails users.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, accounts: AccountStore, mailer: Mailer, clock: Callable[[], int]) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._clock = clock

    def deliver(self, due: StoredNotification) -> Answer:
        """
        Raises:
            NotDelivered: this server sends no mail, or the user has no confirmed address.
        """
        if not self._mailer.configured:
            raise NotDelivered("this server sends no mail", "dropped")
        message = _message(due)
        now_ms = self._clock()
        address = Notices(self._accounts, self._mailer, now_ms).address_of(number_of(due), message)
        if address is None:
            raise NotDelivered("the user has no confirmed address", "dropped")
        if not self._mailer.send(message, address, now_ms, once_key=mail_key(due.id)):
            raise NotDelivered("this server sends no mail", "dropped")
        return Answer()


def _message(due: StoredNotification) -> Message:
    title, text = title_of(due.text)
    paragraphs = tuple(part.strip() for part in text.split("\n\n") if part.strip())
    path, label = due.payload.get("path"), due.payload.get("link", "Open")
    return Message(_KIND, one_line(title), paragraphs or (title,), Link(label, path) if path else None)
