"""The organisation's settings about users and teams: names, defaults and which values are valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runvitals.accounts.policies import OrganisationPolicies
from runvitals.model.account_names import address_key, domain_key
from runvitals.outbound.policy import outbound_policy

_MAX_NETWORKS: Final = 50


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A setting: one of `choices`, an integer within `limits`, a text up to `longest`, a list of networks, or
    else a list of domains."""

    default: Any
    choices: tuple[Any, ...] = ()
    limits: tuple[int, int] | None = None
    longest: int | None = None
    networks: bool = False
    optional: bool = False


def _switch(default: bool) -> SettingRule:
    return SettingRule(default, (True, False))


_ENFORCED: Final = {
    "hidden": ("hidden", True),
    "private": ("public_projects", False),
    "members_invite": ("members_invite", True),
    "public_sharing": ("public_links", True),
    "code_saving": ("code_saving", True),
}
"""By the last part of `enforce_…`: the switch of a team that it locks, and the switch's value for `on`."""

SETTINGS: Final[dict[str, SettingRule]] = {
    "name": SettingRule("", longest=64),
    "url": SettingRule("", longest=300),
    "support_contact": SettingRule("", longest=300),
    "mail_from": SettingRule("", longest=254),
    "signup": SettingRule("invite", ("closed", "invite", "domain", "open")),
    "signup_domains": SettingRule([]),
    "default_access": SettingRule("full", ("full", "viewer", "none")),
    "password_login": _switch(True),
    "team_creation": SettingRule("admins", ("admins", "members")),
    "team_admins_invite_new": _switch(True),
    "team_admins_edit_privacy": _switch(False),
    "admin_team_access": _switch(True),
    "anonymous_access": SettingRule("off", ("off", "read")),
    "personal_visibility": SettingRule("team", ("team", "organisation", "public", "open")),
    "hide_teams_by_default": _switch(False),
    "code_saving_default": _switch(False),
    "members_see_emails": _switch(False),
    **{f"enforce_{name}": SettingRule("none", ("none", "on", "off")) for name in _ENFORCED},
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
    "outside_images": SettingRule("proxy", ("proxy", "off")),
    "outbound_allow": SettingRule([], networks=True),
}


SECURITY_SETTINGS: Final = frozenset(
    (
        "url",
        "smtp_url",
        "mail_from",
        "signup",
        "signup_domains",
        "default_access",
        "password_login",
        "team_creation",
        "team_admins_invite_new",
        "team_admins_edit_privacy",
        "admin_team_access",
        "anonymous_access",
        "allow_public_projects",
        "allow_public_links",
        "key_max_age_days",
        "session_days",
        "session_idle_days",
        "sudo_minutes",
        "audit_days",
        "outbound_allow",
    )
)
"""Settings of whose changes all administrators get a mail."""


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


def enforced_switches(stored: Mapping[str, Any]) -> dict[str, bool]:
    """The privacy switches of teams that the organisation locks, with the value that all teams have.

    Example:
        >>> enforced_switches({"enforce_private": "on"})
        {'public_projects': False}
    """
    return {
        switch: (stored[setting] == "on") is when_on
        for name, (switch, when_on) in _ENFORCED.items()
        if stored.get(setting := f"enforce_{name}") in ("on", "off")
    }


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
    if rule.longest is not None:
        return _text(name, value, rule.longest)
    if rule.networks:
        return _networks(name, value)
    return _domains(name, value)


def _text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError(f"invalid {name}; expected a text of at most {longest} characters")
    if name == "mail_from" and value:
        address_key(value)
    return value.strip()


def _networks(name: str, value: Any) -> list[str]:
    valid = isinstance(value, list) and len(value) <= _MAX_NETWORKS
    if not valid or not all(isinstance(network, str) for network in value):
        raise ValueError(f"invalid {name}; expected a list of at most {_MAX_NETWORKS} networks")
    outbound_policy(value)
    return list(value)


def _domains(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(domain, str) for domain in value):
        raise ValueError(f"invalid {name} {value!r}; expected a list of domains")
    return sorted({domain_key(domain) for domain in value})
