"""Requests to join teams, and joining by mail domain."""

from __future__ import annotations

import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.teams.storage.join_requests import A_DAY, JoinRequestRow
from runvitals.store.errors import LimitReached, NameTaken, NoLongerValid, NotAllowed

T0 = 1_800_000_000_000


@pytest.fixture
def actors(accounts: AccountStore) -> dict[str, Actor]:
    """Users who sign in: ada administers vision, bob is in no team."""
    users = {}
    for name in ("ada", "bob"):
        user = accounts.users.create(name, CLI, T0, address=f"{name}@{name}.example", verified=True)
        users[name] = Actor("user", name, user.id, "session")
    accounts.teams.create("vision", CLI, T0, administrator=users["ada"].id)
    return users


def ask(accounts: AccountStore, actor: Actor, team: str = "vision", text: str = "") -> JoinRequestRow:
    assert actor.id is not None
    return accounts.join_requests.create(team, actor.id, text, actor, T0)


def test_a_request_is_approved_once(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    row = ask(accounts, actors["bob"], text=" I label images. ")
    assert (row.team, row.user, row.message, row.state) == ("vision", "bob", "I label images.", "pending")
    with pytest.raises(NameTaken, match="already asked"):
        ask(accounts, actors["bob"])
    assert accounts.join_requests.of_team(row.team_id) == [row]
    accounts.join_requests.approve(row.id, "viewer", actors["ada"], T0 + 1)
    member = accounts.members.get("vision", "bob")
    assert (member.role, member.added_by) == ("viewer", "ada")
    ended = accounts.join_requests.get(row.id)
    assert (ended.state, ended.ended_ms, ended.ended_by) == ("approved", T0 + 1, "ada")
    for again in (accounts.join_requests.reject, accounts.join_requests.withdraw):
        with pytest.raises(NoLongerValid):
            again(row.id, actors["ada"], T0 + 2)
    with pytest.raises(NameTaken, match="already a member"):
        ask(accounts, actors["bob"])


def test_a_request_ends_with_the_membership_that_comes_another_way(
    accounts: AccountStore, actors: dict[str, Actor]
) -> None:
    row = ask(accounts, actors["bob"])
    accounts.members.add("vision", "bob", "member", actors["ada"], T0)
    assert accounts.join_requests.get(row.id).state == "approved"
    assert accounts.join_requests.of_team(row.team_id) == []


def test_a_rejected_request_can_be_made_again(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    row = ask(accounts, actors["bob"])
    accounts.join_requests.reject(row.id, actors["ada"], T0)
    again = ask(accounts, actors["bob"])
    assert again.id != row.id
    accounts.join_requests.withdraw(again.id, actors["bob"], T0)
    assert accounts.join_requests.purge(T0 + DAY_MS) == 2


def test_an_account_without_access_is_not_approved(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    row = ask(accounts, actors["bob"])
    accounts.users.update(row.user_id, CLI, T0, access="none")
    with pytest.raises(NotAllowed, match="may not join"):
        accounts.join_requests.approve(row.id, "member", actors["ada"], T0)
    assert accounts.join_requests.get(row.id).state == "pending"


def test_requests_within_a_day_are_limited(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    for number in range(A_DAY + 1):
        accounts.teams.create(f"team-{number}", CLI, T0)
    for number in range(A_DAY):
        ask(accounts, actors["bob"], f"team-{number}")
    with pytest.raises(LimitReached):
        ask(accounts, actors["bob"], f"team-{A_DAY}")


def test_joining_by_a_verified_mail_domain(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    bob = actors["bob"]
    assert bob.id is not None

    def names() -> list[str]:
        return [row.name for row in accounts.join_requests.recommended(bob.id or 0)]

    def join() -> None:
        accounts.join_requests.join_by_domain("vision", bob, T0)

    accounts.teams.update("vision", CLI, T0, join_domains=["Bob.Example", "bob.example"])
    assert accounts.teams.by_name("vision").join_domains == ("bob.example",)
    assert names() == []  # it is not recommended
    accounts.teams.update("vision", CLI, T0, recommend_by_domain=True)
    assert names() == ["vision"]
    with pytest.raises(NotAllowed):
        join()  # they must ask
    row = ask(accounts, bob)
    accounts.teams.update("vision", CLI, T0, join_by_domain="auto", join_domains=["other.example"])
    accounts.emails.add(bob.id, "bob@other.example", bob, T0)
    assert names() == []
    with pytest.raises(NotAllowed):
        join()  # the address is not verified
    [added] = [email for email in accounts.emails.of_user(bob.id) if not email.is_primary]
    accounts.emails.verify(added.id, bob, T0)
    assert names() == ["vision"]
    join()
    member = accounts.members.get("vision", "bob")
    assert (member.role, member.added_by) == ("member", "bob")
    assert accounts.join_requests.get(row.id).state == "approved"
    assert names() == []


def test_domains_and_how_they_join_are_checked(accounts: AccountStore, actors: dict[str, Actor]) -> None:
    for changes in (
        {"join_domains": ["not a domain"]},
        {"join_domains": [f"{number}.example" for number in range(21)]},
        {"join_by_domain": "maybe"},
    ):
        with pytest.raises(ValueError, match=r"domain|join by domain"):
            accounts.teams.update("vision", CLI, T0, **changes)  # type: ignore[arg-type]
