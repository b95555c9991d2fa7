"""Requests at the same time that reach a limit or leave no administrator, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.emails import MAX_ADDRESSES
from runvitals.server.accounts.storage.keys import MAX_SERVICE_KEYS
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.organisation.storage.roles import MAX_ROLES
from runvitals.server.teams.storage.invitations import A_DAY_BY_USER, InvitationRow
from runvitals.store.errors import LastAdministrator, LimitReached, NoLongerValid, SentTooOften

T0 = 1_800_000_000_000
COUNT = 50
THREADS = 16


@pytest.fixture
def administrators(accounts: AccountStore) -> list[UserRow]:
    return [accounts.users.create(f"admin{number}", CLI, T0, org_role="admin") for number in range(COUNT)]


def succeeded(work: object, count: int) -> int:
    """How many of some calls at the same time were not refused because of a limit."""

    def one(number: int) -> bool:
        try:
            work(number)  # type: ignore[operator]
        except (LastAdministrator, LimitReached, SentTooOften):
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(one, range(count)))


def test_the_organisation_keeps_one(accounts: AccountStore, administrators: list[UserRow]) -> None:
    accounts.users.update(administrators[0].id, CLI, T0, billing_role="admin")

    def demote(number: int) -> None:
        accounts.users.update(administrators[number].id, CLI, T0, org_role="member")

    assert succeeded(demote, COUNT) == COUNT - 1
    left = [row.user for row in accounts.users.listed() if row.user.org_role == "admin"]
    assert [row.billing_role for row in left] == ["admin"]


def test_a_team_keeps_one(accounts: AccountStore, administrators: list[UserRow]) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=administrators[0].id)
    for user in administrators[1:]:
        accounts.members.add("vision", user.name, "admin", CLI, T0)

    def demote_or_remove(number: int) -> None:
        name = administrators[number].name
        if number % 2:
            accounts.members.set_role("vision", name, "viewer", CLI, T0)
        else:
            accounts.members.remove("vision", name, CLI, T0)

    assert succeeded(demote_or_remove, COUNT) == COUNT - 1
    roles = [row.role for row in accounts.members.of_team("vision")]
    assert roles.count("admin") == 1


def test_one_of_many_who_accept_at_once_joins(accounts: AccountStore, administrators: list[UserRow]) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=administrators[0].id)
    secret, _ = accounts.invitations.create("vision", None, "member", CLI, T0)
    offered: InvitationRow = accounts.invitations.by_secret(secret, T0)

    def accept(user: UserRow) -> bool:
        try:
            accounts.invitations.accept(offered, user.id, Actor("user", user.name, user.id), T0)
        except NoLongerValid:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(accept, administrators[1:9])) == 1
    assert len(accounts.members.of_team("vision")) == 2


def test_limits_hold_for_what_is_added_at_once(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    service = accounts.service_accounts.create("ci", team.id, CLI, T0)
    by_ada = Actor("user", "ada", ada.id)

    def add_address(number: int) -> None:
        accounts.emails.add(ada.id, f"ada{number}@example.org", by_ada, T0)

    def make_key(number: int) -> None:
        accounts.keys.create(f"key {number}", by_ada, T0, service_account_id=service.id)

    def invite(number: int) -> None:
        accounts.invitations.create("vision", f"guest{number}@example.org", "member", by_ada, T0)

    def make_role(number: int) -> None:
        accounts.roles.create(f"role {number}", "member", [], "", CLI, T0)

    assert succeeded(make_role, MAX_ROLES + 3) == MAX_ROLES
    assert succeeded(add_address, MAX_ADDRESSES + 3) == MAX_ADDRESSES - 1
    assert succeeded(make_key, MAX_SERVICE_KEYS + 3) == MAX_SERVICE_KEYS
    assert succeeded(invite, A_DAY_BY_USER + 3) == A_DAY_BY_USER
