"""Secrets, webhooks and Slack destinations of teams, on both databases."""

from __future__ import annotations

from typing import Any, Final

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.alerts.storage.destinations import SealedUrl, UnknownSecret
from runvitals.server.alerts.storage.team_secrets import MAX_SECRETS, SecretInUse
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import LimitReached, NameTaken, NotFound

T0: Final = 1_800_000_000_000
HOOK: Final[dict[str, Any]] = {"url": "https://ci.example/hook", "enabled": True}


def test_who_set_a_secret_is_forgotten_with_the_user(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0)
    team = accounts.teams.create("vision", CLI, T0)
    accounts.team_secrets.put(team.id, "TOKEN", b"\0sealed", Actor("user", "ada", ada.id), T0)
    [row] = accounts.team_secrets.of_team(team.id)
    assert (row.name, row.changed_by, row.changed_ms) == ("TOKEN", "ada", T0)
    assert accounts.team_secrets.sealed_value(team.id, "TOKEN") == b"\0sealed"
    accounts.users.delete(ada.id, CLI, T0)
    [row] = accounts.team_secrets.of_team(team.id)
    assert row.changed_by is None


def test_names_and_limits(metadata_store: MetadataStore) -> None:
    accounts, destinations = metadata_store.accounts, metadata_store.alerts.destinations
    team = accounts.teams.create("vision", CLI, T0)
    destinations.create("webhook", team.id, "ci", HOOK, CLI, T0)
    with pytest.raises(NameTaken):
        destinations.create("webhook", team.id, "ci", HOOK, CLI, T0)
    with pytest.raises(UnknownSecret):
        destinations.create("webhook", team.id, "b", {**HOOK, "access_secret": "NONE"}, CLI, T0)
    assert len(destinations.of_team("webhook", team.id)) == 1
    for number in range(MAX_SECRETS):
        accounts.team_secrets.put(team.id, f"S{number}", b"x", CLI, T0)
    with pytest.raises(LimitReached):
        accounts.team_secrets.put(team.id, "MORE", b"x", CLI, T0)
    accounts.team_secrets.put(team.id, "S0", b"y", CLI, T0)
    assert accounts.team_secrets.sealed_value(team.id, "S0") == b"y"


def test_integrations_go_with_the_team(metadata_store: MetadataStore) -> None:
    accounts, destinations = metadata_store.accounts, metadata_store.alerts.destinations
    team = accounts.teams.create("vision", CLI, T0)
    accounts.team_secrets.put(team.id, "TOKEN", b"x", CLI, T0)
    uses = {"access_secret": "TOKEN", "signing_secret": "TOKEN", "payload": "{}"}
    destinations.create("webhook", team.id, "ci", {**HOOK, **uses}, CLI, T0)
    destinations.create("slack", team.id, "#runs", SealedUrl(b"x", "…")._asdict(), CLI, T0)
    with pytest.raises(SecretInUse):
        accounts.team_secrets.delete(team.id, "TOKEN", CLI, T0)
    accounts.teams.delete("vision", CLI, T0)
    with pytest.raises(NotFound):
        accounts.team_secrets.put(team.id, "TOKEN", b"y", CLI, T0)
    accounts.teams.purge(team.id, CLI, T0)
    assert accounts.team_secrets.of_team(team.id) == []
    assert destinations.of_team("webhook", team.id) == []
    assert destinations.of_team("slack", team.id) == []
