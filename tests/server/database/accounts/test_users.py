from __future__ import annotations

import threading

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.audit.storage.audit import CLI, Actor, AuditFilter
from runvitals.store.errors import LastAdministrator, NameTaken, NotFound
from tests.patience import PATIENCE_S

T0 = 1_800_000_000_000
DAY = 86_400_000


def test_a_user_is_created_and_found(accounts: AccountStore) -> None:
    user = accounts.users.create("Ada", CLI, T0, address="Ada@Example.org", verified=True, org_role="admin")
    assert (user.name, user.state, user.org_role, user.billing_role) == ("ada", "active", "admin", "admin")
    assert accounts.users.get(user.id) == accounts.users.by_name("ADA") == user
    assert accounts.users.by_address("ada@example.org") == user
    assert accounts.users.page() == [user]
    assert accounts.users.any_administrator()


def test_names_are_unique_reserved_and_never_given_twice(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    accounts.users.create("bob", CLI, T0, org_role="admin")
    for name, message in (("ada", "taken"), ("Admin", "reserved"), ("a b", "expected 1 to 64")):
        with pytest.raises(ValueError, match=message):
            accounts.teams.create(name, CLI, T0)
    accounts.users.delete(user.id, CLI, T0)
    with pytest.raises(NameTaken):
        accounts.users.create("ada", CLI, T0)


def test_an_unverified_user_becomes_active_with_the_address(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0, address="ada@example.org")
    assert user.state == "unverified"
    (email,) = accounts.emails.of_user(user.id)
    assert accounts.users.by_address("ada@example.org") is None
    assert accounts.emails.verify(email.id, CLI, T0).verified_ms == T0
    assert accounts.users.get(user.id).state == "active"


def test_whoever_verifies_an_address_first_has_it(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    bob = accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)
    first = accounts.emails.add(ada.id, "lab@example.org", CLI, T0)
    second = accounts.emails.add(bob.id, "LAB@example.org", CLI, T0)
    accounts.emails.verify(second.id, CLI, T0)
    assert [row.address for row in accounts.emails.of_user(ada.id)] == ["ada@example.org"]
    with pytest.raises(NotFound):
        accounts.emails.verify(first.id, CLI, T0)
    again = accounts.emails.add(ada.id, "lab@example.org", CLI, T0)
    with pytest.raises(NameTaken):
        accounts.emails.verify(again.id, CLI, T0)


def test_the_primary_address_is_verified_and_stays(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    other = accounts.emails.add(ada.id, "ada@lab.example.org", CLI, T0)
    with pytest.raises(ValueError, match="only a verified address"):
        accounts.emails.make_primary(other.id, CLI, T0)
    accounts.emails.verify(other.id, CLI, T0)
    accounts.emails.make_primary(other.id, CLI, T0)
    with pytest.raises(ValueError, match="cannot be deleted"):
        accounts.emails.delete(other.id, CLI, T0)
    (old,) = [row for row in accounts.emails.of_user(ada.id) if not row.is_primary]
    accounts.emails.delete(old.id, CLI, T0)
    assert [row.address for row in accounts.emails.of_user(ada.id)] == ["ada@lab.example.org"]


def test_addresses_that_are_never_verified_are_dropped(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    accounts.emails.add(ada.id, "new@example.org", CLI, T0 + DAY)
    assert accounts.emails.purge_unverified(T0 + DAY) == 0
    assert accounts.emails.purge_unverified(T0 + DAY + 1) == 1


@pytest.mark.parametrize("change", [{"org_role": "member"}, {"state": "suspended"}])
def test_the_last_administrator_stays(accounts: AccountStore, change: dict[str, str]) -> None:
    ada = accounts.users.create("ada", CLI, T0, org_role="admin")
    with pytest.raises(LastAdministrator, match="ada is the last administrator"):
        accounts.users.update(ada.id, CLI, T0, **change)
    with pytest.raises(LastAdministrator):
        accounts.users.delete(ada.id, CLI, T0)
    bob = accounts.users.create("bob", CLI, T0, org_role="admin")
    with pytest.raises(LastAdministrator, match="last billing administrator"):
        accounts.users.update(ada.id, CLI, T0, **change)
    accounts.users.update(bob.id, CLI, T0, billing_role="admin")
    changed = accounts.users.update(ada.id, CLI, T0, **change)
    assert {name: getattr(changed, name) for name in change} == change


def test_administrators_who_demote_each_other_do_not_both_succeed(accounts: AccountStore) -> None:
    users = [accounts.users.create(name, CLI, T0, org_role="admin") for name in ("ada", "bob", "eve")]
    accounts.users.update(users[1].id, CLI, T0, billing_role="admin")
    accounts.users.update(users[2].id, CLI, T0, billing_role="admin")
    refused, start = [], threading.Barrier(len(users))

    def demote(user_id: int) -> None:
        start.wait(PATIENCE_S)
        try:
            accounts.users.update(user_id, CLI, T0, org_role="member")
        except LastAdministrator:
            refused.append(user_id)

    threads = [threading.Thread(target=demote, args=(user.id,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(refused) == 1
    assert [user.id for user in accounts.users.page() if user.org_role == "admin"] == refused


def test_suspending_a_user_ends_the_sessions(accounts: AccountStore) -> None:
    accounts.users.create("root-of-all", CLI, T0, org_role="admin")
    ada = accounts.users.create("ada", CLI, T0)
    life = SessionLife()
    secret = accounts.sessions.create(ada.id, T0, life, method="password")
    assert accounts.sessions.check(secret, T0 + 1, life) is not None
    accounts.users.update(ada.id, CLI, T0, state="suspended")
    assert accounts.sessions.check(secret, T0 + 1, life) is None


def test_an_invalid_change_is_rejected(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0)
    with pytest.raises(ValueError, match="unknown field 'name'"):
        accounts.users.update(ada.id, CLI, T0, name="eve")
    with pytest.raises(ValueError, match="invalid access 'all'; expected one of full, viewer, none"):
        accounts.users.update(ada.id, CLI, T0, access="all")


def test_a_deletion_waits_and_can_be_cancelled(accounts: AccountStore) -> None:
    accounts.users.create("root-of-all", CLI, T0, org_role="admin")
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    accounts.users.request_deletion(ada.id, CLI, T0, 7 * DAY)
    accounts.users.cancel_deletion(ada.id, CLI, T0)
    assert accounts.users.deletion_due(T0 + 8 * DAY) == []
    accounts.users.request_deletion(ada.id, CLI, T0, 7 * DAY)
    assert accounts.users.deletion_due(T0 + 6 * DAY) == []
    assert [user.name for user in accounts.users.deletion_due(T0 + 7 * DAY)] == ["ada"]
    accounts.users.delete(ada.id, CLI, T0 + 7 * DAY)
    with pytest.raises(NotFound):
        accounts.users.by_name("ada")
    bob = accounts.users.create("bob", CLI, T0, address="ada@example.org", verified=True)
    assert accounts.users.by_address("ada@example.org") == bob


def test_every_change_is_in_the_audit_log_and_raises_the_generation(accounts: AccountStore) -> None:
    before = accounts.generation()
    ada = accounts.users.create("ada", CLI, T0, org_role="admin")
    session = Actor("user", "ada", ada.id, via="session", ip="192.0.2.1")
    accounts.users.create("bob", session, T0 + 1)
    assert accounts.generation() > before
    newest, oldest = accounts.audit.page(AuditFilter(action="user.*"))
    assert (newest.action, newest.actor_name, newest.ip, newest.entity) == (
        "user.create",
        "ada",
        "192.0.2.1",
        "bob",
    )
    assert (oldest.actor_kind, oldest.after) == ("cli", {"org_role": "admin"})
    assert accounts.audit.page(AuditFilter(actor_id=ada.id, from_ms=T0, until_ms=T0 + 2)) == [newest]
    assert accounts.audit.page(AuditFilter(before_id=newest.id), limit=1) == [oldest]
    assert accounts.audit.page(AuditFilter(action="team.create")) == []
    assert accounts.audit.purge(T0 + 1) == 1
    assert accounts.audit.page(AuditFilter()) == [newest]


def test_a_change_that_fails_leaves_nothing(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, org_role="admin")
    events, generation = accounts.audit.page(AuditFilter()), accounts.generation()
    with pytest.raises(LastAdministrator):
        accounts.users.update(ada.id, CLI, T0, org_role="member", display_name="Eve")
    assert accounts.users.get(ada.id) == ada
    assert accounts.audit.page(AuditFilter()) == events
    assert accounts.generation() == generation


@pytest.mark.parametrize("name", ["ada\0", "\ud800", "ada\udfff"])
def test_a_name_that_no_database_can_store_is_unknown(accounts: AccountStore, name: str) -> None:
    accounts.users.create("ada", CLI, T0)
    for find in (
        accounts.users.by_name,
        accounts.teams.by_name,
        accounts.roles.get,
        accounts.keys.by_public_id,
        lambda text: accounts.service_accounts.by_name(text, None),
    ):
        with pytest.raises(NotFound):
            find(name)
    assert accounts.entity_id(name) is None
    assert accounts.users.search(name, 1) == []
    for audit_filter in (AuditFilter(actor=name), AuditFilter(action=name), AuditFilter(action=f"{name}*")):
        assert accounts.audit.page(audit_filter) == []
