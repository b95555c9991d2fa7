"""Removes what has expired of accounts, and sends mail about what ends soon or was changed elsewhere."""

from __future__ import annotations

from typing import Final

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import SYSTEM
from runvitals.server.mail import messages
from runvitals.server.mail.mailer import KEPT_MS as MAIL_KEPT_MS
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.notices import Notices
from runvitals.server.mail.outside_changes import LATEST_MS, OutsideChanges
from runvitals.server.mail.reminders import Reminders
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.errors import LastAdministrator, NotFound

UNCONFIRMED_MS: Final = 48 * HOUR_MS
"""How long a sign-up holds its name without a confirmed address."""
UNCONFIRMED_ADDRESS_MS: Final = 30 * DAY_MS
ENDED_SESSION_MS: Final = 30 * DAY_MS
ENDED_INVITATION_MS: Final = 400 * DAY_MS
OLD_FAILURE_MS: Final = HOUR_MS
"""Longer than any limit on signing in counts a failure."""


class AccountHousekeeping:
    """Work on accounts that is done from time to time."""

    def __init__(self, accounts: AccountStore, mailer: Mailer) -> None:
        self._accounts = accounts
        self._mailer = mailer
        self._reminders = Reminders(accounts, mailer)
        self._outside_changes = OutsideChanges(accounts, mailer)

    def send_notices(self, now_ms: int) -> None:
        """Send mail about what was changed on the command line or by an identity provider. Call it often."""
        self._outside_changes.send_due(now_ms)

    def remove_expired(self, now_ms: int) -> None:
        """Remove what has expired, delete the accounts that are due, and remind of what ends soon."""
        accounts = self._accounts
        self._delete_due(now_ms)
        accounts.users.purge_unverified(now_ms - UNCONFIRMED_MS, SYSTEM, now_ms)
        accounts.emails.purge_unverified(now_ms - UNCONFIRMED_ADDRESS_MS)
        accounts.members.remove_expired(SYSTEM, now_ms)
        accounts.invitations.expire(now_ms)
        accounts.invitations.purge(now_ms - ENDED_INVITATION_MS)
        accounts.project_redirects.purge(now_ms)
        accounts.logins.purge(now_ms)
        accounts.passkeys.purge(now_ms)
        accounts.login_failures.purge(now_ms - OLD_FAILURE_MS)
        accounts.sessions.purge(now_ms - ENDED_SESSION_MS)
        accounts.join_requests.purge(now_ms - ENDED_INVITATION_MS)
        accounts.one_time_tokens.purge(now_ms)
        accounts.idempotent_requests.purge(now_ms)
        accounts.outgoing_mail.purge(now_ms - MAIL_KEPT_MS)
        accounts.mail_drafts.purge(now_ms - LATEST_MS)
        audit_days = with_defaults(accounts.settings.all())["audit_days"]
        accounts.audit.purge(now_ms - audit_days * DAY_MS)
        self._reminders.send_due(now_ms)

    def _delete_due(self, now_ms: int) -> None:
        """Carry out the deletions whose waiting period is over.

        A user who has become the last administrator stays until there is another one.
        """
        notices = Notices(self._accounts, self._mailer, now_ms)
        for user in self._accounts.users.deletion_due(now_ms):
            message = messages.account_deleted(user.name)
            address = notices.address_of(user.id, message)
            try:
                self._accounts.users.delete(user.id, SYSTEM, now_ms)
            except (LastAdministrator, NotFound):
                continue  # or another server has deleted it
            if address is not None:
                notices.to_address(address, message)
