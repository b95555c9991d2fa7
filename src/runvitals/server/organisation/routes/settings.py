"""`/organisation/settings`: the settings of the organisation. Secrets are never answered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.accounts.secret_box import SecretBox, SecretUnreadable
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail.settings import masked_smtp_url, opened_smtp_url, sealed_smtp_url, server_url
from runvitals.server.organisation.routes.changed_settings import (
    ENVIRONMENT,
    OF_STATEMENTS,
    SMTP_URL,
    enforced_by,
    put_settings,
)
from runvitals.server.organisation.settings import SETTINGS, checked_settings, with_defaults
from runvitals.server.service_parameters import TheAccess, TheNotices, TheServices

router = Router()


@router.get("/organisation/settings", dependencies=[needs("org:settings")])
def settings(access: TheAccess, services: TheServices) -> dict[str, Any]:
    """All settings, each with whether it can be changed and what is allowed, and the picture."""
    return _settings(access, services.box)


@router.put("/organisation/settings", dependencies=[needs("org:settings")])
def change_settings(
    changes: dict[str, Any],
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
    services: TheServices,
) -> dict[str, Any]:
    """Change settings. What is left out does not change; all changes are made, or none.

    Public links are revoked when they are no longer allowed, and stay so.
    """
    checked: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, value in changes.items():
        try:
            checked |= _checked(name, value, services.box)
        except ValueError as error:
            wrong[name] = str(error)
    if wrong:
        raise InvalidFields(wrong)
    put_settings(access, requester, notices, checked)
    return _settings(access, services.box)


def _checked(name: str, value: Any, box: SecretBox) -> dict[str, Any]:
    if name == SMTP_URL:
        if value is None:
            return {name: None}
        if not isinstance(value, str):
            raise ValueError("invalid smtp_url; expected a URL or null")
        return {name: sealed_smtp_url(value, box)}
    checked = checked_settings({name: value})
    return {name: server_url(value)} if name == "url" and value else checked


def _settings(access: AccessControl, box: SecretBox) -> dict[str, Any]:
    stored = access.accounts.settings.all()
    values = with_defaults(stored)
    shown = {
        name: {
            **_setting(access, name, values[name], str),
            "default": rule.default,
            **({"choices": list(rule.choices)} if rule.choices else {}),
            **({"limits": list(rule.limits)} if rule.limits else {}),
        }
        for name, rule in SETTINGS.items()
    }
    smtp_url = _shown_smtp_url(stored.get(SMTP_URL), box)
    shown[SMTP_URL] = {**_setting(access, SMTP_URL, smtp_url, masked_smtp_url), "default": None}
    return {"settings": shown, "picture": access.accounts.pictures.of_organisation()}


def _setting(access: AccessControl, name: str, value: Any, shown: Callable[[str], str]) -> dict[str, Any]:
    by = enforced_by(name, access.accounts.settings)
    if by is None and name in OF_STATEMENTS and access.metadata_store.usage.statements.any_issued():
        by = "the statements that were issued"
    of_environment = os.environ.get(ENVIRONMENT.get(name, ""))
    return {
        "value": shown(of_environment) if of_environment else value,
        "editable": by is None,
        "enforced_by": by,
    }


def _shown_smtp_url(stored: Any, box: SecretBox) -> str | None:
    """The URL of the mail server without its password."""
    if not isinstance(stored, str):
        return None
    try:
        return masked_smtp_url(opened_smtp_url(stored, box))
    except SecretUnreadable:
        return "unreadable: the key file is another one"
