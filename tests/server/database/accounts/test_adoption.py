"""What a server stored before accounts, and the key of cursors, on both databases."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.errors import NameTaken

T0 = 1_800_000_000_000


def test_earlier_projects_and_tokens_go_to_a_team_once(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    assert not accounts.adopt_earlier_projects("main", T0)
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], T0)
    ada = accounts.users.create("ada", CLI, T0, org_role="admin")
    assert accounts.adopt_earlier_projects("main", T0)
    assert not accounts.adopt_earlier_projects("main", T0)
    project = accounts.project_members.get(metadata_store.projects.id("digits"))
    assert project.entity_id == accounts.teams.by_name("main").id
    assert [(member.name, member.role) for member in accounts.members.of_team("main")] == [
        (ada.name, "admin")
    ]
    assert accounts.service_accounts.legacy() is None  # there were no tokens that it would stand for
    metadata_store.tokens.create("cluster A", T0)
    assert accounts.adopt_earlier_projects("main", T0)
    assert accounts.service_accounts.legacy() is not None


def test_tokens_alone_are_adopted_too(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    _, token = metadata_store.tokens.create("cluster A", T0)
    metadata_store.tokens.revoke(token.id, T0)
    assert not accounts.adopt_earlier_projects("main", T0)
    metadata_store.tokens.create("cluster B", T0)
    team = accounts.teams.create("vision", CLI, T0)
    assert accounts.adopt_earlier_projects("vision", T0)
    legacy = accounts.service_accounts.legacy()
    assert legacy is not None
    assert legacy.team_id == team.id


def test_a_user_cannot_be_the_team(metadata_store: MetadataStore) -> None:
    metadata_store.tokens.create("cluster A", T0)
    metadata_store.accounts.users.create("main", CLI, T0, org_role="admin")
    with pytest.raises(NameTaken):
        metadata_store.accounts.adopt_earlier_projects("main", T0)


def test_the_key_of_cursors_stays_the_same(metadata_store: MetadataStore) -> None:
    key = metadata_store.accounts.cursor_key()
    assert len(key) >= 32
    assert metadata_store.accounts.cursor_key() == key
