"""Changes of settings: checked together, written, and reported to the administrators."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from fastapi import HTTPException

from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.alerts.slack_app import ID_ENVIRONMENT, ID_SETTING, SECRET_ENVIRONMENT, SECRET_SETTING
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices
from runvitals.server.mail.settings import (
    MAIL_FROM_ENVIRONMENT,
    SMTP_URL_ENVIRONMENT,
    URL_ENVIRONMENT,
    missing_for_mail,
)
from runvitals.server.organisation.settings import SECURITY_SETTINGS
from runvitals.server.organisation.storage.settings import SettingTable
from runvitals.store.errors import SettingFixed

SMTP_URL: Final = "smtp_url"
PROVIDERS: Final = "providers"
ENVIRONMENT: Final = {
    SMTP_URL: SMTP_URL_ENVIRONMENT,
    "mail_from": MAIL_FROM_ENVIRONMENT,
    "url": URL_ENVIRONMENT,
    ID_SETTING: ID_ENVIRONMENT,
    SECRET_SETTING: SECRET_ENVIRONMENT,
}
"""Settings that the environment takes precedence over."""
OF_STATEMENTS: Final = frozenset(("currency", "time_zone"))
"""Settings that stay as they are from the first statement on."""
_SECRET: Final = frozenset((SMTP_URL, PROVIDERS, SECRET_SETTING))
_OF_MAIL: Final = frozenset((SMTP_URL, "mail_from", "url"))
_MISSING: Final = {
    "mail_from": "the sender is missing, without which no mail is sent",
    "url": "the address of this server is missing, with which links in mails begin",
}


def enforced_by(name: str, settings: SettingTable) -> str | None:
    """Return the variable or file that takes precedence over the stored value of a setting, or None."""
    variable = ENVIRONMENT.get(name, "")
    if os.environ.get(variable):
        return variable
    return settings.fixed_by if name in settings.fixed else None


def put_settings(
    access: AccessControl, requester: Requester, notices: Notices, changes: Mapping[str, Any]
) -> None:
    """Store settings whose values are valid.

    Raises:
        InvalidFields: mail could not be sent any more, because a setting that it needs is missing.
        HTTPException: 409 if a variable or a file sets one of them, or statements were issued with it.
    """
    if not changes:
        return
    table = access.accounts.settings
    for name in sorted(changes):
        by = enforced_by(name, table)
        if by is not None:
            raise HTTPException(409, f"{name} cannot be changed here: it is set by {by}")
    if changes.keys() & _OF_MAIL:
        missing = missing_for_mail({**table.all(), **changes}, os.environ)
        if missing:
            raise InvalidFields({name: _MISSING[name] for name in missing})
    accounts, actor, now_ms = access.accounts, requester.actor, access.clock()

    def change() -> None:
        table.put(changes, actor, now_ms, _SECRET)
        # They stay revoked when they are allowed again.
        if changes.get("allow_public_links") is False:
            accounts.guest_links.revoke_all(actor, now_ms)
        elif changes.get("enforce_public_sharing") == "off":
            accounts.guest_links.revoke_all(actor, now_ms, of_teams=True)

    with answering(409, SettingFixed):
        accounts.in_one_transaction(change)
    access.rights_changed()
    if matters := sorted(changes.keys() & SECURITY_SETTINGS):
        notices.to_organisation_administrators(messages.settings_changed(requester.mail_name, matters))
