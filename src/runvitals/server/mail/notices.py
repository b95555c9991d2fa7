"""Mail about changes: to the user whom they concern, and to administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from runvitals.server.account_store import AccountStore
from runvitals.server.mail.message import Message
from runvitals.store.errors import NotFound

if TYPE_CHECKING:
    from runvitals.server.projects.storage.owned_projects import ProjectDetail

SWITCHED_OFF: Final = "mail_switched_off"
"""The field of a profile with the topics of which its user wants no messages."""
CHOSEN_ADDRESS: Final = "mail_address"
"""The field of a profile with the address for messages that users can switch off; "": the primary one."""


class MailSender(Protocol):
    """Takes messages: a `Mailer`, or the table of drafts in a command, which has no mail server."""

    @property
    def configured(self) -> bool:
        """Whether messages are sent."""

    def send(
        self,
        message: Message,
        address: str,
        now_ms: int,
        *,
        once_key: str | None = None,
        time_zone: str | None = None,
    ) -> bool:
        """Take a message; returns whether it is sent: see `Mailer.send`."""


class Notices:
    """Sends mail to users, where the server sends mail.

    Messages with a topic go to the address that the user chose, unless the user switched off the topic. All
    others go to the primary address.
    """

    def __init__(self, accounts: AccountStore, mailer: MailSender, now_ms: int) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._now_ms = now_ms

    def to_address(self, address: str, message: Message) -> bool:
        """Send to an address; returns whether the server sends mail."""
        return self._mailer.send(message, address, self._now_ms)

    def to_user(self, user_id: int, message: Message, *, once_key: str | None = None) -> bool:
        """Send to a user with a verified primary address; returns whether it was sent.

        Args:
            once_key: as of `Mailer.send`, for one user.
        """
        address = self.address_of(user_id, message)
        if address is None:
            return False
        key = None if once_key is None else f"{once_key}:{user_id}"
        zone = self._wishes(user_id).get("time_zone") or None
        return self._mailer.send(message, address, self._now_ms, once_key=key, time_zone=zone)

    def to_team_administrators(self, team: str, message: Message, *, once_key: str | None = None) -> None:
        """Send to all administrators of a team."""
        for member in self._accounts.members.of_team(team):
            if member.role == "admin":
                self.to_user(member.user_id, message, once_key=once_key)

    def to_members(
        self, team_id: int, message: Message, *, but: int | None = None, once_key: str | None = None
    ) -> None:
        """Send to all members of a team, which may be in the trash. `but`: the user who made the change."""
        for member in self._accounts.members.of_teams([team_id]).get(team_id, ()):
            if member.user_id != but:
                self.to_user(member.user_id, message, once_key=once_key)

    def to_project_administrators(
        self, project: ProjectDetail, message: Message, *, but: int | None = None
    ) -> None:
        """Send to the owner of a project and the administrators of its team, or the user of its space.

        Args:
            but: the user who made the change.
        """
        space = self._accounts.entity(project.entity_id)
        members = self._accounts.members.of_teams([project.entity_id]).get(project.entity_id, ())
        user_ids = {project.owner_id, None if space is None else space.owner_id}
        user_ids |= {member.user_id for member in members if member.role == "admin"}
        for user_id in user_ids:
            if user_id is not None and user_id != but:
                self.to_user(user_id, message)

    def to_organisation_administrators(self, message: Message, *, once_key: str | None = None) -> None:
        """Send to all active administrators of the organisation."""
        for row in self._accounts.users.listed():
            if row.user.org_role == "admin" and row.user.state == "active":
                self.to_user(row.user.id, message, once_key=once_key)

    def address_of(self, user_id: int, message: Message) -> str | None:
        """Return where a message to a user goes; None if it is not sent."""
        if not self._mailer.configured:
            return None
        verified = [row for row in self._accounts.emails.of_user(user_id) if row.verified_ms is not None]
        primary = next((row.address for row in verified if row.is_primary), None)
        if primary is None or not message.topic:
            return primary
        wishes = self._wishes(user_id)
        if message.topic in wishes.get(SWITCHED_OFF, ()):
            return None
        chosen = wishes.get(CHOSEN_ADDRESS)
        return next((row.address for row in verified if row.address == chosen), primary)

    def _wishes(self, user_id: int) -> Mapping[str, Any]:
        try:
            return self._accounts.profiles.get(user_id).fields
        except NotFound:
            return {}  # deleted meanwhile
