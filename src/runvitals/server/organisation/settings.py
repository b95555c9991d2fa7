"""The organisation's settings about users and teams: names, defaults and which values are valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import available_timezones

from runvitals.model.account_names import address_key, domain_key
from runvitals.server.outbound.policy import OutboundPolicy, outbound_policy, proxy_address

_MAX_NETWORKS: Final = 50
_MAX_HOSTS: Final = 50
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_ORIGIN: Final = re.compile(r"https?://[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?", re.ASCII)
_MAX_FEATURES: Final = 100
_MAX_FEATURE_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A setting: one of `choices`, an integer within `limits`, a text up to `longest`, or what `check` makes.

    Attributes:
        check: returns a valid value as it is stored, and raises ValueError for others; not for empty texts.
        optional: null is valid too.
    """

    default: Any
    choices: tuple[Any, ...] = ()
    limits: tuple[int, int] | None = None
    longest: int | None = None
    check: Callable[[Any], Any] | None = None
    optional: bool = False


def _switch(default: bool) -> SettingRule:
    return SettingRule(default, (True, False))


def time_zone(name: str) -> str:
    """Return the name of a time zone, or raise ValueError if there is none like it."""
    if name != "UTC" and name not in available_timezones():
        raise ValueError("unknown time zone; expected a name such as Europe/Berlin")
    return name


def _currency(code: str) -> str:
    if len(code) != 3 or not (code.isascii() and code.isalpha()):
        raise ValueError("expected three letters such as EUR")
    return code.upper()


def _from_to(low: float, high: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return value

    return check


def _sender(address: str) -> str:
    address_key(address)
    return address


def _proxy(url: str) -> str:
    proxy_address(url)
    return url


def _networks(value: Any) -> list[str]:
    valid = isinstance(value, list) and len(value) <= _MAX_NETWORKS
    if not valid or not all(isinstance(network, str) for network in value):
        raise ValueError(f"expected a list of at most {_MAX_NETWORKS} networks")
    outbound_policy(value)
    return list(value)


def _hosts(value: Any) -> list[str]:
    valid = isinstance(value, list) and len(value) <= _MAX_HOSTS
    if not valid or not all(isinstance(host, str) and _HOST.fullmatch(host.lower()) for host in value):
        raise ValueError(f"expected a list of at most {_MAX_HOSTS} names of hosts, such as chat.example.org")
    return sorted({host.lower() for host in value})


def _origins(value: Any) -> list[str]:
    valid = isinstance(value, list) and len(value) <= _MAX_HOSTS
    if not valid or not all(
        isinstance(origin, str) and _ORIGIN.fullmatch(origin.lower()) for origin in value
    ):
        raise ValueError(
            f"expected a list of at most {_MAX_HOSTS} origins of sites, such as https://wiki.example.org"
        )
    return sorted({origin.lower() for origin in value})


def _domains(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(domain, str) for domain in value):
        raise ValueError("expected a list of domains")
    return sorted({domain_key(domain) for domain in value})


def _features(value: Any) -> dict[str, str]:
    valid = isinstance(value, dict) and len(value) <= _MAX_FEATURES
    if not valid or not all(state in ("on", "off") for state in value.values()):
        raise ValueError("expected on or off by the name of a feature")
    return {str(name)[:_MAX_FEATURE_NAME]: state for name, state in value.items()}


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
    "mail_from": SettingRule("", longest=254, check=_sender),
    "time_zone": SettingRule("UTC", longest=64, check=time_zone),
    "signup": SettingRule("invite", ("closed", "invite", "domain", "open")),
    "signup_domains": SettingRule([], check=_domains),
    "default_access": SettingRule("full", ("full", "viewer", "none")),
    "password_login": _switch(True),
    "team_creation": SettingRule("admins", ("admins", "members")),
    "team_admins_invite_new": _switch(True),
    "team_admins_edit_privacy": _switch(False),
    "admin_team_access": _switch(True),
    "anonymous_access": SettingRule("off", ("off", "read")),
    "personal_entities": _switch(True),
    "personal_visibility": SettingRule("team", ("team", "organisation", "public", "open")),
    "hide_teams_by_default": _switch(False),
    "code_saving_default": _switch(False),
    "members_see_emails": _switch(False),
    "usage_names": _switch(False),
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
    "storage_limit_gb": SettingRule(100, limits=(1, 1_000_000), optional=True),
    "currency": SettingRule("EUR", longest=3, check=_currency),
    "idle_percent": SettingRule(5, limits=(1, 100)),
    "idle_minutes": SettingRule(15, limits=(1, 240)),
    "charge_unknown_use": _switch(False),
    "pue": SettingRule(1.0, check=_from_to(1, 10)),
    "co2_g_per_kwh": SettingRule(None, check=_from_to(0, 5000), optional=True),
    "audit_days": SettingRule(400, limits=(90, 36_500)),
    "audit_anonymise": _switch(False),
    "alert_console": _switch(True),
    "team_messages_an_hour": SettingRule(500, limits=(1, 100_000), optional=True),
    "outside_images": SettingRule("proxy", ("proxy", "off")),
    "slack_hosts": SettingRule([], check=_hosts),
    "webhook_http": SettingRule([], check=_hosts),
    "outbound_allow": SettingRule([], check=_networks),
    "outbound_proxy": SettingRule("", longest=300, check=_proxy),
    "embed_origins": SettingRule([], check=_origins),
    "beta_features": SettingRule({}, check=_features),
}


SECURITY_SETTINGS: Final = frozenset(
    (
        "url",
        "smtp_url",
        "mail_from",
        "slack_client_id",
        "slack_client_secret",
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
        "audit_anonymise",
        "slack_hosts",
        "webhook_http",
        "outbound_allow",
        "outbound_proxy",
        "embed_origins",
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
    return {name: _check_value(name, value) for name, value in changes.items()}


def with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings. A stored value that is no longer valid counts as its default."""
    settings = {name: rule.default for name, rule in SETTINGS.items()}
    for name in SETTINGS.keys() & stored.keys():
        try:
            settings[name] = _check_value(name, stored[name])
        except ValueError:
            continue
    return settings


def policy_of(stored: Mapping[str, Any]) -> OutboundPolicy:
    """Return where requests may go besides public addresses by https, and through which proxy."""
    settings = with_defaults(stored)
    return outbound_policy(settings["outbound_allow"], settings["webhook_http"], settings["outbound_proxy"])


def enforced_switches(stored: Mapping[str, Any]) -> dict[str, bool]:
    """Return the privacy switches of teams that the organisation locks, with the value that all teams have.

    Example:
        >>> enforced_switches({"enforce_private": "on"})
        {'public_projects': False}
    """
    return {
        switch: (stored[setting] == "on") is when_on
        for name, (switch, when_on) in _ENFORCED.items()
        if stored.get(setting := f"enforce_{name}") in ("on", "off")
    }


def _check_value(name: str, value: Any) -> Any:
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
        return _text(name, value, rule)
    assert rule.check is not None
    return _with_name(name, value, rule.check)


def _text(name: str, value: Any, rule: SettingRule) -> str:
    assert rule.longest is not None
    if not isinstance(value, str) or len(value) > rule.longest or not value.isprintable():
        raise ValueError(f"invalid {name}; expected a text of at most {rule.longest} characters")
    text = value.strip()
    if not text and rule.default:
        return str(rule.default)
    return str(_with_name(name, text, rule.check)) if text and rule.check is not None else text


def _with_name(name: str, value: Any, check: Callable[[Any], Any]) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"invalid {name}: {error}") from None
