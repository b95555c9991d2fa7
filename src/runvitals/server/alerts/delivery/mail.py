"""Notifications by mail: they are passed to the mail queue, which has its own retries."""

from __future__ import annotations

from collections.abc import Callable

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.account_store import AccountStore
from runvitals.server.alerts.delivery.channel import DeliveryFailed, number_of, title_of
from runvitals.server.alerts.delivery.run_actions import may_read
from runvitals.server.events.outbox import ChannelResponse, StoredNotification, mail_key
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.message import Link, Message, one_line
from runvitals.server.mail.notices import Notices
from runvitals.server.mail.storage.outgoing_mail import ALERT


class MailChannel:
    """Mails users.

    Args:
        directory: knows what users may do.
        clock: the time now, ms UTC.
    """

    def __init__(
        self, accounts: AccountStore, mailer: Mailer, directory: Directory, clock: Callable[[], int]
    ) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._directory = directory
        self._clock = clock

    def deliver(self, due: StoredNotification) -> ChannelResponse:
        """Mail a user, `user:7`. Raises `DeliveryFailed`."""
        return self._mail(due, number_of(due))

    def deliver_to_member(self, due: StoredNotification) -> ChannelResponse:
        """Mail a member of the team or organisation, `member:ada`. Raises `DeliveryFailed`."""
        name, owner_id = due.target.partition(":")[2], due.team_id
        if owner_id is not None and self._directory.entity(owner_id).organisation:
            user_id = self._accounts.users.active_among([name]).get(name)
        else:
            members = self._accounts.members.of_teams([owner_id or 0]).get(owner_id or 0, ())
            user_id = next((member.user_id for member in members if member.name == name), None)
        if user_id is None:
            raise DeliveryFailed(f"{name} is no member of the team any more", "failed")
        project_id = due.payload.get("project_id")
        if project_id is not None and not may_read(self._directory, user_id, project_id):
            raise DeliveryFailed(f"{name} may not read the project", "failed")
        return self._mail(due, user_id)

    def _mail(self, due: StoredNotification, user_id: int) -> ChannelResponse:
        if not self._mailer.configured:
            raise DeliveryFailed("this server sends no mail", "dropped")
        message = _message(due)
        now_ms = self._clock()
        address = Notices(self._accounts, self._mailer, now_ms).address_of(user_id, message)
        if address is None:
            raise DeliveryFailed("the user has no confirmed address", "dropped")
        if not self._mailer.send(message, address, now_ms, once_key=mail_key(due.id)):
            raise DeliveryFailed("this server sends no mail", "dropped")
        return ChannelResponse()


def _message(due: StoredNotification) -> Message:
    title, text = title_of(due.text)
    paragraphs = tuple(part.strip() for part in text.split("\n\n") if part.strip())
    path, label = due.payload.get("path"), due.payload.get("link", "Open")
    link, mute = Link(label, path) if path else None, str(due.payload.get("mute", ""))
    return Message(ALERT, one_line(title), paragraphs or (title,), link, mute=mute)
