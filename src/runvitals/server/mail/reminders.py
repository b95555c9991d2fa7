"""`Reminders`: mail before something ends, a week and a day ahead."""

from __future__ import annotations

from typing import Final, Protocol
from urllib.parse import quote

from runvitals.model.durations import DAY_MS
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.ending_access import EndingGuestLink, EndingKey
from runvitals.server.mail import messages
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.notices import Notices

AHEAD_DAYS: Final = (1, 7)
"""How many days before the end a message is sent, in ascending order."""
IN_USE_MS: Final = 30 * DAY_MS
"""A key that was not used for so long ends without a message."""


class _Ending(Protocol):
    @property
    def set_ms(self) -> int: ...
    @property
    def end_ms(self) -> int: ...


class Reminders:
    """Reminds users of what ends soon: keys in use, memberships, guest links and their own accounts.

    Each end is announced once per number of days, however many servers share the metadata store. What had
    fewer days from the start is not announced for that number of days.
    """

    def __init__(self, accounts: AccountStore, mailer: Mailer) -> None:
        self._accounts = accounts
        self._mailer = mailer

    def send_due(self, now_ms: int) -> None:
        """Queue the messages that are due; does nothing on a server without mail."""
        if not self._mailer.configured:
            return
        notices = Notices(self._accounts, self._mailer, now_ms)
        ending, until_ms = self._accounts.ending_access, now_ms + max(AHEAD_DAYS) * DAY_MS
        for key in ending.keys(now_ms, until_ms, now_ms - IN_USE_MS):
            if (once := _once(f"key:{key.id}", key, now_ms)) is not None:
                _remind_of_key(notices, key, once)
        for member in ending.memberships(now_ms, until_ms):
            if (once := _once(f"membership:{member.id}", member, now_ms)) is not None:
                message = messages.membership_ends_soon(member.team, member.end_ms)
                notices.to_user(member.user_id, message, once_key=once)
        for link in ending.guest_links(now_ms, until_ms):
            if (once := _once(f"guest_link:{link.id}", link, now_ms)) is not None:
                subject, path = _target(link)
                message = messages.guest_link_ends_soon(subject, link.end_ms, path)
                notices.to_user(link.user_id, message, once_key=once)
        for account in ending.accounts(now_ms, until_ms):
            if (once := _once("account", account, now_ms)) is not None:
                message = messages.deletion_soon(account.name, account.end_ms)
                notices.to_user(account.user_id, message, once_key=once)


def _once(prefix: str, ending: _Ending, now_ms: int) -> str | None:
    """Return the key of the message that is due; None if none is. Another end is another message."""
    days = next((days for days in AHEAD_DAYS if ending.end_ms - now_ms <= days * DAY_MS), None)
    if days is None or ending.end_ms - ending.set_ms <= days * DAY_MS:
        return None
    return f"{prefix}:{ending.end_ms}:{days}"


def _remind_of_key(notices: Notices, key: EndingKey, once: str) -> None:
    if key.user_id is not None:
        message = messages.key_ends_soon(key.name, key.key_name, key.public_id, key.end_ms)
        notices.to_user(key.user_id, message, once_key=once)
        return
    home = "/-/organisation" if key.team is None else f"/{key.team}/-/settings"
    path = f"{home}/service-accounts"
    message = messages.key_ends_soon(key.name, key.key_name, key.public_id, key.end_ms, path)
    if key.team is None:
        notices.to_organisation_administrators(message, once_key=once)
    else:
        notices.to_team_administrators(key.team, message, once_key=once)


def _target(link: EndingGuestLink) -> tuple[str, str]:
    """Return what a guest link is to, and the path of its page."""
    path = f"/{link.entity}/{quote(link.project, safe='')}"
    if link.run is not None:
        return f"the run {link.run}", f"{path}/runs/{quote(link.run, safe='')}"
    return f"the project {link.project}", path
