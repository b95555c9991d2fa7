from __future__ import annotations

import itertools

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.teams.storage.invitations import AGAIN_MS, AlreadyInvited
from runvitals.store.errors import (
    LastAdministrator,
    NameTaken,
    NoLongerValid,
    NotAllowed,
    NotFound,
    SentTooOften,
)

T0 = 1_800_000_000_000
DAY = 86_400_000


def _accept(accounts: AccountStore, secret: str, user_id: int, now_ms: int) -> None:
    offered = accounts.invitations.by_secret(secret, now_ms)
    accounts.invitations.accept(offered, user_id, CLI, now_ms)


@pytest.fixture
def ada(accounts: AccountStore) -> UserRow:
    return accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True, org_role="admin")


@pytest.fixture
def bob(accounts: AccountStore) -> UserRow:
    return accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)


def test_a_team_and_its_members(accounts: AccountStore, ada: UserRow, bob: UserRow) -> None:
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "viewer", CLI, T0)
    with pytest.raises(NameTaken):
        accounts.members.add("vision", "bob", "member", CLI, T0)
    accounts.members.set_role("vision", "bob", "member", CLI, T0)
    members = accounts.members.of_team("vision")
    assert [(row.name, row.role, row.address) for row in members] == [
        ("ada", "admin", "ada@example.org"),
        ("bob", "member", "bob@example.org"),
    ]
    grants = accounts.user_grants(bob.id, T0)
    assert grants is not None
    assert grants.teams[team.id].role == "member"
    accounts.members.remove("vision", "bob", CLI, T0)
    assert accounts.teams.by_name("vision").members == 1
    with pytest.raises(NotFound, match="bob is not a member of vision"):
        accounts.members.remove("vision", "bob", CLI, T0)


def test_a_team_with_members_keeps_an_administrator(
    accounts: AccountStore, ada: UserRow, bob: UserRow
) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=bob.id)
    accounts.members.add("vision", "ada", "member", CLI, T0)
    with pytest.raises(LastAdministrator, match="the team vision needs an administrator"):
        accounts.members.set_role("vision", "bob", "member", CLI, T0)
    with pytest.raises(LastAdministrator):
        accounts.members.remove("vision", "bob", Actor("user", "bob", bob.id), T0)
    with pytest.raises(LastAdministrator):
        accounts.users.delete(bob.id, CLI, T0)
    accounts.members.remove("vision", "ada", CLI, T0)
    accounts.members.remove("vision", "bob", CLI, T0)
    assert accounts.teams.without_administrator() == ["vision"]


def test_a_membership_ends_at_its_time(accounts: AccountStore, ada: UserRow, bob: UserRow) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "member", CLI, T0, expires_ms=T0 + DAY)
    before, after = accounts.user_grants(bob.id, T0), accounts.user_grants(bob.id, T0 + DAY)
    assert before is not None
    assert after is not None
    assert (len(before.teams), len(after.teams)) == (1, 0)
    assert accounts.members.remove_expired(CLI, T0 + DAY) == 1
    assert [row.name for row in accounts.members.of_team("vision")] == ["ada"]


def test_a_custom_role(accounts: AccountStore, ada: UserRow, bob: UserRow) -> None:
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.roles.create("Labeller", "viewer", ["run:update"], "", CLI, T0)
    with pytest.raises(NameTaken):
        accounts.roles.create("labeller", "member", [], "", CLI, T0)
    accounts.members.add("vision", "bob", "labeller", CLI, T0)
    both = ["run:update", "report:create"]
    accounts.roles.update("Labeller", CLI, T0, name="Labeller", description="", actions=both)
    (role,) = accounts.roles.all()
    assert (role.users, role.actions) == (1, {"run:update", "report:create"})
    grants = accounts.user_grants(bob.id, T0)
    assert grants is not None
    assert (grants.teams[team.id].role, grants.teams[team.id].actions) == ("viewer", role.actions)
    assert accounts.roles.delete("Labeller", CLI, T0) == 1
    grants = accounts.user_grants(bob.id, T0)
    assert grants is not None
    assert (grants.teams[team.id].role, grants.teams[team.id].actions) == ("viewer", frozenset())
    with pytest.raises(NotFound, match="there is no role 'Labeller'"):
        accounts.members.set_role("vision", "bob", "Labeller", CLI, T0)


def test_team_settings(accounts: AccountStore) -> None:
    accounts.teams.create("vision", CLI, T0)
    changed = accounts.teams.update("vision", CLI, T0, hidden=True, description="We see.")
    assert (changed.hidden, changed.description) == (True, "We see.")
    for change in ({"name": "other"}, {"hidden": "yes"}, {"default_visibility": "secret"}):
        with pytest.raises(ValueError, match=r"invalid (field|visibility)"):
            accounts.teams.update("vision", CLI, T0, **change)


def test_a_team_in_the_trash_has_no_members_page(accounts: AccountStore) -> None:
    accounts.teams.create("vision", CLI, T0)
    accounts.teams.delete("vision", CLI, T0 + 1)
    assert accounts.teams.by_name("vision").deleted_ms == T0 + 1
    with pytest.raises(NotFound):
        accounts.members.of_team("vision")
    accounts.teams.restore("vision", CLI, T0 + 2)
    assert accounts.members.of_team("vision") == []


def test_an_invitation_by_e_mail(accounts: AccountStore, ada: UserRow) -> None:
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    secret, invitation = accounts.invitations.create("vision", "eve@example.org", "member", CLI, T0)
    assert invitation.state == "pending"
    assert accounts.invitations.by_secret(secret, T0).team == "vision"
    eve = accounts.users.create("eve", CLI, T0, address="other@example.org")
    _accept(accounts, secret, eve.id, T0)
    assert accounts.users.get(eve.id).state == "active"
    assert accounts.users.by_address("eve@example.org") == accounts.users.get(eve.id)
    primary, other = accounts.emails.of_user(eve.id)
    assert (primary.address, primary.is_primary, other.verified_ms) == ("eve@example.org", True, None)
    grants = accounts.user_grants(eve.id, T0)
    assert grants is not None
    assert grants.teams[team.id].role == "member"
    with pytest.raises(NoLongerValid, match="was used, has expired or was revoked"):
        _accept(accounts, secret, ada.id, T0)


def test_a_second_invitation_replaces_the_link(accounts: AccountStore) -> None:
    accounts.teams.create("vision", CLI, T0)
    first, _ = accounts.invitations.create("vision", "eve@example.org", "viewer", CLI, T0)
    second, invitation = accounts.invitations.create("vision", "Eve@Example.org", "member", CLI, T0)
    assert [row.id for row in accounts.invitations.all("vision")] == [invitation.id]
    with pytest.raises(NoLongerValid):
        accounts.invitations.by_secret(first, T0)
    with pytest.raises(AlreadyInvited):  # so that two who invite at once do not send two links
        accounts.invitations.create("vision", "eve@example.org", "member", CLI, T0)
    accounts.invitations.by_secret(second, T0)
    moments = itertools.count(T0 + AGAIN_MS, AGAIN_MS)
    third = accounts.invitations.resend(invitation.id, CLI, next(moments))
    with pytest.raises(NoLongerValid):
        accounts.invitations.by_secret(second, T0)
    assert accounts.invitations.by_secret(third, T0).role == "member"
    for _ in range(2):
        accounts.invitations.resend(invitation.id, CLI, next(moments))
    with pytest.raises(ValueError, match="sent 5 times within a day"):
        accounts.invitations.resend(invitation.id, CLI, next(moments))


def test_of_two_who_send_an_invitation_again_at_once_one_sends_a_link_that_works(
    accounts: AccountStore,
) -> None:
    accounts.teams.create("vision", CLI, T0)
    _, invitation = accounts.invitations.create("vision", "eve@example.org", "member", CLI, T0)
    secret = accounts.invitations.resend(invitation.id, CLI, T0 + 1)
    with pytest.raises(SentTooOften, match="sent again a moment ago") as refused:
        accounts.invitations.resend(invitation.id, CLI, T0 + AGAIN_MS)
    assert refused.value.wait_s == 10
    assert accounts.invitations.by_secret(secret, T0 + AGAIN_MS).id == invitation.id


def test_an_invitation_expires_or_is_revoked_or_declined(accounts: AccountStore, bob: UserRow) -> None:
    accounts.teams.create("vision", CLI, T0)
    expired, _ = accounts.invitations.create("vision", "eve@example.org", "member", CLI, T0, days=1)
    with pytest.raises(NoLongerValid):
        _accept(accounts, expired, bob.id, T0 + DAY)
    revoked, invitation = accounts.invitations.create("vision", None, "member", CLI, T0)
    accounts.invitations.revoke(invitation.id, CLI, T0)
    declined, _ = accounts.invitations.create("vision", None, "member", CLI, T0)
    accounts.invitations.decline(accounts.invitations.by_secret(declined, T0), CLI, T0)
    for secret in (revoked, declined):
        with pytest.raises(NoLongerValid):
            _accept(accounts, secret, bob.id, T0)
    assert accounts.invitations.expire(T0 + DAY) == 1
    states = [row.state for row in accounts.invitations.all(pending=False)]
    assert states == ["expired", "revoked", "declined"]


def test_accepting_lowers_no_role(accounts: AccountStore, ada: UserRow) -> None:
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    secret, _ = accounts.invitations.create("vision", None, "viewer", CLI, T0)
    _accept(accounts, secret, ada.id, T0)
    grants = accounts.user_grants(ada.id, T0)
    assert grants is not None
    assert grants.teams[team.id].role == "admin"


def test_a_restricted_project_and_its_members(
    metadata_store: MetadataStore, accounts: AccountStore, ada: UserRow, bob: UserRow
) -> None:
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], T0)
    project_id = metadata_store.projects.id("digits")
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    assert accounts.teams.adopt(team.id, CLI, T0) == 1
    by_ada = Actor("user", "ada", ada.id)
    accounts.owned_projects.update(project_id, by_ada, T0, visibility="restricted")
    with pytest.raises(NotAllowed, match="only members of the team"):
        accounts.project_members.add(project_id, by_ada, T0, user_id=bob.id)
    accounts.members.add("vision", "bob", "member", CLI, T0)
    accounts.project_members.add(project_id, by_ada, T0, user_id=bob.id, role="viewer")
    accounts.owned_projects.update(project_id, by_ada, T0, owner_id=bob.id)
    project = accounts.project_members.get(project_id)
    assert (project.entity_id, project.owner_id, project.visibility) == (team.id, bob.id, "restricted")
    assert not accounts.project_members.sole_author(project_id)
    for user in (ada, bob):
        grants = accounts.user_grants(user.id, T0)
        assert grants is not None
        assert project_id in grants.projects
    accounts.members.remove("vision", "bob", CLI, T0)
    grants = accounts.user_grants(bob.id, T0)
    assert grants is not None
    assert grants.projects == {}
    assert accounts.project_members.get(project_id).owner_id is None


@pytest.mark.parametrize("end", ["remove", "demote", "delete"])
def test_invitations_end_with_the_right_to_invite(
    accounts: AccountStore, ada: UserRow, bob: UserRow, end: str
) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "admin", CLI, T0)
    by_bob = Actor("user", "bob", bob.id)
    secret, _ = accounts.invitations.create("vision", "eve@example.org", "member", by_bob, T0)
    if end == "remove":
        accounts.members.remove("vision", "bob", CLI, T0)
    elif end == "demote":
        accounts.members.set_role("vision", "bob", "member", CLI, T0)
    else:
        accounts.teams.delete("vision", CLI, T0)
    with pytest.raises(NoLongerValid):
        accounts.invitations.by_secret(secret, T0)
