"""`/organisation/settings`: the settings of the organisation. Secrets are never shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict, Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.http.bodies import ResponseBody
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
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester, TheServices

router = Router()


class OrganisationSetting(ResponseBody):
    """A setting with what is allowed, and whether and why it cannot be changed."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    value: Any
    editable: bool
    enforced_by: str | None
    default: Any
    choices: list[Any] | None = None
    limits: list[Any] | None = Field(default=None, description="The lowest and the highest value.")


class OrganisationSettingsSchema(ResponseBody):
    """The settings by name. `picture`: the digest of the organisation's picture."""

    settings: dict[str, OrganisationSetting]
    picture: str | None
    public_links: int = Field(description="That work now: they end if public links are switched off.")


@router.get("/organisation/settings", needs("org:settings"), response_model_exclude_unset=True)
def settings(access: TheAccess, services: TheServices) -> OrganisationSettingsSchema:
    """All settings, each with whether it can be changed and what is allowed, and the picture."""
    return _settings(access, services.box)


@router.put("/organisation/settings", needs("org:settings"), response_model_exclude_unset=True)
def change_settings(
    changes: dict[str, Any],
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
    services: TheServices,
) -> OrganisationSettingsSchema:
    """Change settings. What is left out does not change; all changes are made, or none.

    Public links are revoked when they are no longer allowed, and stay so.
    """
    checked: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in changes.items():
        try:
            checked |= _check_setting(name, value, services.box)
        except ValueError as error:
            problems[name] = str(error)
    if problems:
        raise InvalidFields(problems)
    put_settings(access, requester, notices, checked)
    return _settings(access, services.box)


def _check_setting(name: str, value: Any, box: SecretBox) -> dict[str, Any]:
    if name == SMTP_URL:
        if value is None:
            return {name: None}
        if not isinstance(value, str):
            raise ValueError("invalid smtp_url; expected a URL or null")
        return {name: sealed_smtp_url(value, box)}
    checked = checked_settings({name: value})
    return {name: server_url(value)} if name == "url" and value else checked


def _settings(access: AccessControl, box: SecretBox) -> OrganisationSettingsSchema:
    stored = access.accounts.settings.all()
    values = with_defaults(stored)
    settings = {}
    for name, rule in SETTINGS.items():
        setting = _setting(access, name, values[name], rule.default, str)
        if rule.choices:
            setting.choices = list(rule.choices)
        if rule.limits:
            setting.limits = list(rule.limits)
        settings[name] = setting
    smtp_url = _masked_smtp_url(stored.get(SMTP_URL), box)
    settings[SMTP_URL] = _setting(access, SMTP_URL, smtp_url, None, masked_smtp_url)
    return OrganisationSettingsSchema(
        settings=settings,
        picture=access.accounts.pictures.of_organisation(),
        public_links=access.accounts.guest_links.count(access.clock()),
    )


def _setting(
    access: AccessControl, name: str, value: Any, default: Any, masked: Callable[[str], str]
) -> OrganisationSetting:
    """Return a setting. `masked`: what is shown of a value from the environment."""
    by = enforced_by(name, access.accounts.settings)
    if by is None and name in OF_STATEMENTS and access.metadata_store.usage.statements.any_issued():
        by = "the statements that were issued"
    of_environment = os.environ.get(ENVIRONMENT.get(name, ""))
    return OrganisationSetting(
        value=masked(of_environment) if of_environment else value,
        editable=by is None,
        enforced_by=by,
        default=default,
    )


def _masked_smtp_url(stored: Any, box: SecretBox) -> str | None:
    """Return the URL of the mail server without its password."""
    if not isinstance(stored, str):
        return None
    try:
        return masked_smtp_url(opened_smtp_url(stored, box))
    except SecretUnreadable:
        return "unreadable: the key file is another one"
