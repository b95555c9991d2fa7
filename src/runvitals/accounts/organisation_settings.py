"""The organisation's settings about users and teams: names, defaults and which values are valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runvitals.accounts.policies import OrganisationPolicies
from runvitals.model.account_names import domain_key


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A setting: one of `choices`, an integer within `limits`, or else a list of domains."""

    default: Any
    choices: tuple[Any, ...] = ()
    limits: tuple[int, int] | None = None
    optional: bool = False


def _switch(default: bool) -> SettingRule:
    return SettingRule(default, (True, False))


SETTINGS: Final[dict[str, SettingRule]] = {
    "signup": SettingRule("invite", ("closed", "invite", "domain", "open")),
    "signup_domains": SettingRule([]),
    "default_access": SettingRule("full", ("full", "viewer", "none")),
    "password_login": _switch(True),
    "team_creation": SettingRule("admins", ("admins", "members")),
    "team_admins_invite_new": _switch(True),
    "team_admins_edit_privacy": _switch(False),
    "admin_team_access": _switch(True),
    "anonymous_access": SettingRule("off", ("off", "read")),
    "allow_public_projects": _switch(True),
    "allow_public_links": _switch(True),
    "api_key_creation": SettingRule("members", ("members", "admins")),
    "key_max_age_days": SettingRule(None, limits=(1, 3650), optional=True),
    "session_days": SettingRule(30, limits=(1, 90)),
    "session_idle_days": SettingRule(7, limits=(1, 30)),
    "sudo_minutes": SettingRule(15, limits=(5, 60)),
    "invitation_days": SettingRule(7, limits=(1, 30)),
    "trash_days": SettingRule(30, limits=(1, 365)),
    "audit_days": SettingRule(400, limits=(90, 36_500)),
}


def checked_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Check changes of settings.

    Raises:
        ValueError: an unknown name or an invalid value; the message says what is allowed.

    Example:
        >>> checked_settings({"signup": "open"})
        {'signup': 'open'}
    """
    return {name: _checked(name, value) for name, value in changes.items()}


def with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """All settings. A stored value that is no longer valid counts as its default."""
    settings = {name: rule.default for name, rule in SETTINGS.items()}
    for name in SETTINGS.keys() & stored.keys():
        try:
            settings[name] = _checked(name, stored[name])
        except ValueError:
            continue
    return settings


def policies_of(stored: Mapping[str, Any]) -> OrganisationPolicies:
    """The settings that change who may do what."""
    settings = with_defaults(stored)
    return OrganisationPolicies(
        anonymous_read=settings["anonymous_access"] == "read",
        members_create_teams=settings["team_creation"] == "members",
        team_admins_invite_new=settings["team_admins_invite_new"],
        team_admins_edit_privacy=settings["team_admins_edit_privacy"],
        admins_join_teams=settings["admin_team_access"],
        public_projects=settings["allow_public_projects"],
        public_links=settings["allow_public_links"],
    )


def _checked(name: str, value: Any) -> Any:
    rule = SETTINGS.get(name)
    if rule is None:
        raise ValueError(f"unknown setting {name!r}; expected one of {', '.join(sorted(SETTINGS))}")
    if value is None and rule.optional:
        return None
    if rule.choices:
        # `1 == True`: the type counts too.
        if not any(value == choice and type(value) is type(choice) for choice in rule.choices):
            raise ValueError(f"invalid {name} {value!r}; expected one of {', '.join(map(str, rule.choices))}")
        return value
    if rule.limits is not None:
        low, high = rule.limits
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"invalid {name} {value!r}; expected an integer from {low} to {high}")
        return value
    return _domains(name, value)


def _domains(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(domain, str) for domain in value):
        raise ValueError(f"invalid {name} {value!r}; expected a list of domains")
    return sorted({domain_key(domain) for domain in value})
