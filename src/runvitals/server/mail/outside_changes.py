"""`OutsideChanges`: mail about what was changed on the command line or by an identity provider.

Routes of the API send their mail themselves. The command line has no mail server, and leaves drafts. An
identity provider changes many users at once, so a server finds its changes in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import AuditEvent
from runvitals.server.mail import messages, team_messages
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.message import Message
from runvitals.server.mail.notices import Notices
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.errors import NotFound

LATEST_MS: Final = DAY_MS
"""Earlier changes, made while no server ran or mail was not set up, are not announced."""
_BY: Final = "Your identity provider"
_OVERLAP_MS: Final = 15 * MINUTE_MS
"""A long transaction adds its event after later ones."""


class OutsideChanges:
    """Announces these changes to the users concerned, once, however many servers share the metadata store."""

    def __init__(self, accounts: AccountStore, mailer: Mailer) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._from_ms = 0
        self._announced: set[int] = set()

    def send_due(self, now_ms: int) -> None:
        """Queue the messages that are due; does nothing on a server without mail."""
        if not self._mailer.configured:
            return
        notices = Notices(self._accounts, self._mailer, now_ms)
        self._send_drafts(now_ms)
        after_id, announced = 0, set()
        while events := self._accounts.audit.made_via(
            "provider", max(self._from_ms, now_ms - LATEST_MS), after_id
        ):
            for event in events:
                # Not twice: a user who became an administrator since then would get a message about the past.
                if event.id not in self._announced:
                    self._announce(notices, event)
                announced.add(event.id)
            after_id = events[-1].id
        self._from_ms, self._announced = now_ms - _OVERLAP_MS, announced

    def _send_drafts(self, now_ms: int) -> None:
        """Put into the queue what was written where no mail can be sent."""
        table = self._accounts.mail_drafts
        for draft in table.all():
            if draft.created_ms >= now_ms - LATEST_MS:
                once_key = f"draft:{draft.id}"
                self._mailer.send(
                    draft.message, draft.address, now_ms, once_key=once_key, time_zone=draft.time_zone
                )
            table.remove(draft.id)

    def _announce(self, notices: Notices, event: AuditEvent) -> None:
        once = f"event:{event.id}"
        if event.action == "team.delete":
            days: int = with_defaults(self._accounts.settings.all())["trash_days"]
            message = team_messages.team_deleted(event.entity or "", _BY, event.time_ms + days * DAY_MS)
            notices.to_members(event.entity_id or 0, message, once_key=once)
        else:
            self._announce_to_user(notices, event, once)

    def _announce_to_user(self, notices: Notices, event: AuditEvent, once: str) -> None:
        build = _MESSAGES.get(event.action)
        user = None if build is None else self._user(event)
        if build is None or user is None or user.created_ms >= event.time_ms:
            return  # settings of a new user are not changes
        message = build(event, user)
        notices.to_user(user.id, message, once_key=once)
        if event.action == "org.member_role":
            notices.to_organisation_administrators(message, once_key=once)

    def _user(self, event: AuditEvent) -> UserRow | None:
        """Whom an event concerns; None if that is no user, or one who was deleted meanwhile."""
        try:
            return self._accounts.users.by_name(event.target or "")
        except NotFound:
            return None


def _role(event: AuditEvent) -> str:
    return str((event.after or {}).get("role", "member"))


def _organisation_role(event: AuditEvent, user: UserRow) -> Message:
    role = str((event.after or {}).get("org_role", "member"))
    role_text = "administrator" if role == "admin" else role
    return messages.organisation_role_changed(user.name, role_text, _BY)


_MESSAGES: Final[dict[str, Callable[[AuditEvent, UserRow], Message]]] = {
    "team.member_add": lambda event, user: messages.added_to_team(event.entity or "", _role(event), _BY),
    "team.member_role": lambda event, user: messages.team_role_changed(event.entity or "", _role(event), _BY),
    "team.member_remove": lambda event, user: messages.removed_from_team(event.entity or "", _BY),
    "user.suspend": lambda event, user: messages.account_suspended(user.name),
    "user.reactivate": lambda event, user: messages.account_reactivated(user.name),
    "org.member_role": _organisation_role,
}
