from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.access.decisions.policies import DEFAULT_POLICIES, OrganisationPolicies
from runvitals.server.organisation.settings import SETTINGS, checked_settings, with_defaults


def test_every_default_is_valid() -> None:
    defaults = {name: rule.default for name, rule in SETTINGS.items()}
    assert checked_settings(defaults) == with_defaults({}) == defaults
    assert OrganisationPolicies.of(with_defaults({})) == DEFAULT_POLICIES


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("signup", "all", "expected one of closed, invite, domain, open"),
        ("password_login", 1, "expected one of True, False"),
        ("session_days", 91, "expected an integer from 1 to 90"),
        ("session_days", True, "expected an integer from 1 to 90"),
        ("session_days", None, "expected an integer"),
        ("signup_domains", "example.org", "expected a list of domains"),
        ("signup_domains", ["no domain"], "invalid domain"),
        ("outside_images", True, "expected one of proxy, off"),
        ("slack_hosts", ["https://chat.example.org"], "names of hosts"),
        ("webhook_http", "hooks.local", "expected a list"),
        ("outbound_allow", "10.0.0.0/8", "expected a list"),
        ("outbound_allow", ["127.0.0.0/8"], "invalid outbound_allow"),
        ("outbound_allow", [10], "expected a list"),
        ("colour", "red", "unknown setting 'colour'; expected one of admin_team_access"),
    ],
)
def test_an_invalid_setting(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_settings({name: value})


def test_valid_settings() -> None:
    changes = {"signup_domains": ["Example.org", "bücher.example", "example.org"], "key_max_age_days": None}
    assert checked_settings(changes)["signup_domains"] == ["example.org", "xn--bcher-kva.example"]


def test_policies_follow_the_settings() -> None:
    stored = {"anonymous_access": "read", "team_creation": "members", "admin_team_access": False}
    policies = OrganisationPolicies.of(with_defaults(stored))
    assert (policies.anonymous_read, policies.members_create_teams, policies.admins_join_teams) == (
        True,
        True,
        False,
    )


def test_a_stored_value_that_is_invalid_counts_as_the_default() -> None:
    assert not OrganisationPolicies.of(
        with_defaults({"anonymous_access": True, "of a later version": 1})
    ).anonymous_read
