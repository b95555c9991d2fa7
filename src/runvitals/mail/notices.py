"""Mail about changes: to the user whom they concern, and to administrators."""

from __future__ import annotations

from runvitals.mail.mailer import Mailer
from runvitals.mail.messages import Message
from runvitals.store.metadata.accounts.account_store import AccountStore


class Notices:
    """Sends mail to users, where the server sends mail."""

    def __init__(self, accounts: AccountStore, mailer: Mailer, now_ms: int) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._now_ms = now_ms

    def to_address(self, address: str, message: Message) -> bool:
        """Send to an address; returns whether the server sends mail."""
        return self._mailer.send(message, address, self._now_ms)

    def to_user(self, user_id: int, message: Message) -> bool:
        """Send to the user's primary address, if it is verified; returns whether it was sent."""
        if not self._mailer.configured:
            return False
        primary = self._accounts.emails.primary(user_id)
        if primary is None or primary.verified_ms is None:
            return False
        return self.to_address(primary.address, message)

    def to_team_administrators(self, team: str, message: Message) -> None:
        """Send to all administrators of a team."""
        for member in self._accounts.members.of_team(team):
            if member.role == "admin":
                self.to_user(member.user_id, message)

    def to_organisation_administrators(self, message: Message) -> None:
        """Send to all active administrators of the organisation."""
        for row in self._accounts.users.listed():
            if row.user.org_role == "admin" and row.user.state == "active":
                self.to_user(row.user.id, message)
