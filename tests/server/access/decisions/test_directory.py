"""Principals and resources from a real metadata store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision
from runvitals.server.access.decisions.decision_cache import Missing
from runvitals.server.access.decisions.directory import KEY_LIFE_MS, Directory
from runvitals.server.access.identification.identity import Credential
from runvitals.server.access.principals import Principal, ServiceAccount, User
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.errors import NotFound
from tests.empty_metadata import new_metadata_store

T0 = 1_800_000_000_000


class Clock:
    ms = T0

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def of_key(directory: Directory, secret: str) -> Principal | None:
    identity = directory.identify(Credential("key", secret))
    return None if identity is None else identity.principal


def of_link(directory: Directory, secret: str) -> Principal | None:
    identity = directory.identify(Credential("link", secret))
    return None if identity is None else identity.principal


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metadata_store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as opened:
        yield opened


@pytest.fixture
def project_id(metadata_store: MetadataStore) -> int:
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], T0)
    return metadata_store.projects.id("digits")


@pytest.fixture
def directory(metadata_store: MetadataStore, clock: Clock) -> Directory:
    return Directory(metadata_store, clock.now_ms, clock.monotonic)


def test_a_removed_member_loses_the_right(
    metadata_store: MetadataStore, directory: Directory, project_id: int, clock: Clock
) -> None:
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0, org_role="admin")
    bob = accounts.users.create("bob", CLI, T0)
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.teams.adopt(team.id, CLI, T0)
    accounts.members.add("vision", "bob", "member", CLI, T0)
    secret, _ = accounts.keys.create("laptop", CLI, T0, user_id=bob.id)

    def decision() -> Decision:
        principal = of_key(directory, secret)
        assert principal is not None
        return directory.decide(principal, Action.RUN_CREATE, directory.project(project_id))

    assert decision() is Decision.ALLOWED
    accounts.members.remove("vision", "bob", CLI, T0)
    clock.ms += 500
    assert decision() is Decision.HIDDEN
    accounts.members.add("vision", "bob", "viewer", CLI, T0)
    directory.rights_changed()
    assert decision() is Decision.DENIED
    accounts.owned_projects.update(project_id, CLI, T0, visibility="open")
    directory.rights_changed()
    assert decision() is Decision.ALLOWED


def test_a_revoked_or_expired_key_is_no_key(
    metadata_store: MetadataStore, directory: Directory, clock: Clock
) -> None:
    user = metadata_store.accounts.users.create("ada", CLI, T0)
    revoked, key = metadata_store.accounts.keys.create("a", CLI, T0, user_id=user.id)
    expiring, _ = metadata_store.accounts.keys.create("b", CLI, T0, user_id=user.id, expires_ms=T0 + 60_000)
    assert isinstance(of_key(directory, revoked), User)
    assert isinstance(of_key(directory, expiring), User)
    assert of_key(directory, "rvt-nonsense") is None
    metadata_store.accounts.keys.revoke(key.id, CLI, T0)
    directory.rights_changed()
    assert of_key(directory, revoked) is None
    clock.ms += 60_000 + KEY_LIFE_MS
    assert of_key(directory, expiring) is None


def test_a_token_from_before_accounts_acts_as_the_teams_service_account(
    metadata_store: MetadataStore, directory: Directory, project_id: int, clock: Clock
) -> None:
    secret, token = metadata_store.tokens.create("cluster A", T0)
    assert of_key(directory, secret) is None
    team = metadata_store.accounts.teams.create("vision", CLI, T0)
    with pytest.raises(NotFound, match="belongs to no team yet"):
        directory.project(project_id)
    metadata_store.accounts.teams.adopt(team.id, CLI, T0)
    directory.rights_changed()
    principal = of_key(directory, secret)
    assert isinstance(principal, ServiceAccount)
    project = directory.project(project_id)
    assert directory.decide(principal, Action.PROJECT_DELETE, project) is Decision.ALLOWED
    assert directory.decide(principal, Action.MEMBER_INVITE, project.entity) is Decision.DENIED
    metadata_store.tokens.revoke(token.id, T0)
    clock.ms += KEY_LIFE_MS  # `runvitals token revoke` raises no generation
    assert of_key(directory, secret) is None


def test_settings_change_decisions(metadata_store: MetadataStore, directory: Directory) -> None:
    assert not directory.policies().anonymous_read
    metadata_store.accounts.settings.put({"anonymous_access": "read"}, CLI, T0)
    directory.rights_changed()
    assert directory.policies().anonymous_read


def test_a_suspended_user_and_a_users_own_space(metadata_store: MetadataStore, directory: Directory) -> None:
    metadata_store.accounts.users.create("root-of-all", CLI, T0, org_role="admin")
    ada = metadata_store.accounts.users.create("ada", CLI, T0)
    space = directory.entity(ada.entity_id)
    principal = directory.user(ada.id)
    assert principal is not None
    assert directory.decide(principal, Action.PROJECT_CREATE, space) is Decision.ALLOWED
    metadata_store.accounts.users.update(ada.id, CLI, T0, state="suspended")
    directory.rights_changed()
    principal = directory.user(ada.id)
    assert principal is not None
    assert directory.decide(principal, Action.PROJECT_CREATE, space) is Decision.HIDDEN
    metadata_store.accounts.users.delete(ada.id, CLI, T0)
    directory.rights_changed()
    assert directory.user(ada.id) is None
    with pytest.raises(NotFound):
        directory.entity(999)


def test_a_guest_link_reads_one_project_until_it_ends(
    metadata_store: MetadataStore, directory: Directory, project_id: int, clock: Clock
) -> None:
    accounts = metadata_store.accounts
    team = accounts.teams.create("vision", CLI, T0)
    accounts.teams.adopt(team.id, CLI, T0)
    secret, link = accounts.guest_links.create(CLI, T0, project_id=project_id, expires_ms=T0 + 60_000)
    principal = of_link(directory, secret)
    assert principal is not None
    project = directory.project(project_id)
    assert directory.decide(principal, Action.RUN_READ, project) is Decision.ALLOWED
    assert directory.decide(principal, Action.RUN_CREATE, project) is Decision.DENIED
    assert of_link(directory, "nonsense") is None
    assert accounts.guest_links.all(T0, project_id=project_id) == [link]
    clock.ms += 60_000 + KEY_LIFE_MS
    assert of_link(directory, secret) is None
    other, revoked = accounts.guest_links.create(CLI, T0, project_id=project_id)
    assert of_link(directory, other) is not None
    accounts.guest_links.revoke(revoked.id, CLI, T0)
    directory.rights_changed()
    assert of_link(directory, other) is None
    with pytest.raises(ValueError, match="one project, one run or one report"):
        accounts.guest_links.create(CLI, T0)


def test_a_session_is_its_user_until_it_is_ended(
    metadata_store: MetadataStore, directory: Directory, clock: Clock
) -> None:
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0)
    secret = accounts.sessions.create(ada.id, T0, directory.session_life(), method="password")
    credential = Credential("session", secret)
    assert isinstance(directory.known(credential), Missing)
    identity = directory.identify(credential)
    assert identity is not None
    assert identity.session is not None
    assert (identity.name, identity.principal) == ("ada", directory.user(ada.id))
    assert directory.known(credential) is identity
    other = accounts.sessions.renew(identity.session.id, T0, directory.session_life())
    directory.rights_changed()
    assert directory.identify(credential) is None
    renewed = Credential("session", other)
    assert directory.identify(renewed) is not None
    accounts.sessions.end(ada.id, CLI, T0)
    clock.ms += 500  # another process notices it
    assert directory.identify(renewed) is None


def test_a_new_password_ends_sessions_and_a_suspension_keys_too(
    metadata_store: MetadataStore, directory: Directory
) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("root-of-all", CLI, T0, org_role="admin")
    ada = accounts.users.create("ada", CLI, T0)
    secret = accounts.sessions.create(ada.id, T0, directory.session_life(), method="password")
    key, row = accounts.keys.create("laptop", CLI, T0, user_id=ada.id)
    identity = directory.identify(Credential("key", key))
    assert identity is not None
    assert (identity.name, identity.key_public_id) == ("ada", row.public_id)
    assert directory.identify(Credential("session", secret)) is not None
    accounts.credentials.set_password(ada.id, "hash", CLI, T0)
    directory.rights_changed()
    assert directory.identify(Credential("session", secret)) is None
    assert of_key(directory, key) is not None
    accounts.users.update(ada.id, CLI, T0, state="suspended")
    directory.rights_changed()
    assert of_key(directory, key) is None


def test_accounts_exist_from_the_first_administrator_on(
    metadata_store: MetadataStore, directory: Directory
) -> None:
    metadata_store.accounts.users.create("ada", CLI, T0)
    directory.rights_changed()
    assert not directory.accounts_exist
    metadata_store.accounts.users.create("bob", CLI, T0, org_role="admin")
    directory.rights_changed()
    assert directory.accounts_exist


def test_names_of_users_and_teams(metadata_store: MetadataStore, directory: Directory) -> None:
    ada = metadata_store.accounts.users.create("ada", CLI, T0)
    team = metadata_store.accounts.teams.create("vision", CLI, T0)
    directory.rights_changed()
    assert directory.entity_named("ada") == directory.entity(ada.entity_id)
    assert directory.entity_named("Vision") == directory.entity(team.id)
    assert directory.entity_named("nobody") is None
