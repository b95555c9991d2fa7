"""Removes what has expired of accounts: sign-ups never confirmed, sessions, links, memberships, mail."""

from __future__ import annotations

from typing import Final

from runvitals.accounts.organisation_settings import with_defaults
from runvitals.mail.mailer import KEPT_MS as MAIL_KEPT_MS
from runvitals.store.metadata.accounts.account_store import AccountStore
from runvitals.store.metadata.accounts.audit import SYSTEM

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
UNCONFIRMED_MS: Final = 48 * _HOUR_MS
"""How long a sign-up holds its name without a confirmed address."""
UNCONFIRMED_ADDRESS_MS: Final = 30 * _DAY_MS
ENDED_SESSION_MS: Final = 30 * _DAY_MS
ENDED_INVITATION_MS: Final = 400 * _DAY_MS


def remove_expired(accounts: AccountStore, now_ms: int) -> None:
    """Remove it, and carry out the deletions of accounts that are due."""
    accounts.users.delete_due(SYSTEM, now_ms)
    accounts.users.purge_unverified(now_ms - UNCONFIRMED_MS, SYSTEM, now_ms)
    accounts.emails.purge_unverified(now_ms - UNCONFIRMED_ADDRESS_MS)
    accounts.members.remove_expired(SYSTEM, now_ms)
    accounts.invitations.expire(now_ms)
    accounts.invitations.purge(now_ms - ENDED_INVITATION_MS)
    accounts.project_redirects.purge(now_ms)
    accounts.logins.purge(now_ms)
    accounts.sessions.purge(now_ms - ENDED_SESSION_MS)
    accounts.one_time_tokens.purge(now_ms)
    accounts.outgoing_mail.purge(now_ms - MAIL_KEPT_MS)
    audit_days = with_defaults(accounts.settings.all())["audit_days"]
    accounts.audit.purge(now_ms - audit_days * _DAY_MS)
