"""Mail about what the command line and identity providers changed, sent to a real mail server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.doors.scim.users import SCIM
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.outside_changes import LATEST_MS, OutsideChanges
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound
from tests.server.mail.conftest import T0, SetClock
from tests.server.mail.receiver import Receiver

Send = Callable[[], list[str]]
LATER_MS = T0 + 60_000


@pytest.fixture
def accounts(metadata_store: MetadataStore) -> AccountStore:
    """ada administers the organisation and the team vision; bob is a user."""
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True, org_role="admin")
    accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    return accounts


@pytest.fixture
def sent(accounts: AccountStore, mailer: Mailer, clock: SetClock, receiver: Receiver) -> Send:
    """Lets two servers look; returns the new subjects with their recipients."""
    servers = [OutsideChanges(accounts, mailer), OutsideChanges(accounts, mailer)]
    clock.now_ms = LATER_MS + 60_000

    def now() -> list[str]:
        before = len(receiver.received)
        for server in servers:
            server.send_due(clock.now_ms)
        mailer.send_due()
        return sorted(f"{mail['to']}: {mail['subject']}" for mail in receiver.received[before:])

    return now


def test_members_of_teams(accounts: AccountStore, sent: Send, receiver: Receiver) -> None:
    assert sent() == []  # users and teams that are new
    accounts.members.add("vision", "bob", "viewer", SCIM, LATER_MS)
    assert sent() == ["bob@example.org: You are now in the team vision"]
    assert "Your identity provider added you to the team vision as viewer." in str(receiver.received[-1])
    assert sent() == []
    accounts.members.set_role("vision", "bob", "member", CLI, LATER_MS + 1)
    accounts.members.remove("vision", "bob", CLI, LATER_MS + 2)
    assert sent() == [
        "bob@example.org: You are no longer in the team vision",
        "bob@example.org: Your role in the team vision was changed",
    ]


def test_groups_of_a_provider(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    by = Actor("user", "bob", bob.id, via="provider")
    accounts.group_memberships.follow(bob.id, "lab", {"vision": "member"}, by, LATER_MS)
    assert sent() == ["bob@example.org: You are now in the team vision"]
    accounts.group_memberships.follow(bob.id, "lab", {}, by, LATER_MS)
    assert sent() == ["bob@example.org: You are no longer in the team vision"]


def test_accounts_and_keys(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.users.update(bob.id, CLI, LATER_MS, state="suspended")
    accounts.users.update(bob.id, SCIM, LATER_MS, state="active")
    accounts.credentials.set_password(bob.id, "hashed", CLI, LATER_MS)
    _, key = accounts.keys.create("laptop", CLI, LATER_MS, user_id=bob.id)
    accounts.keys.revoke(key.id, CLI, LATER_MS)
    assert sent() == [
        "bob@example.org: A new API key was created",
        "bob@example.org: An API key was revoked",
        "bob@example.org: Your account was reactivated",
        "bob@example.org: Your account was suspended",
        "bob@example.org: Your password was changed",
    ]


def test_the_organisation(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.settings.put({"support_contact": "help@example.org"}, CLI, LATER_MS)
    assert sent() == []
    accounts.settings.put({"signup": "open"}, CLI, LATER_MS)
    assert sent() == ["ada@example.org: Settings of the organisation were changed"]
    accounts.users.update(bob.id, CLI, LATER_MS, org_role="admin")
    assert sent() == [
        "ada@example.org: The role of bob was changed",
        "bob@example.org: The role of bob was changed",
    ]


def test_deleted_users(accounts: AccountStore, sent: Send, clock: SetClock) -> None:
    for name, by in (("bob", CLI), ("eve", SCIM)):
        accounts.users.delete(_user(accounts, name).id, by, LATER_MS)
        # The address is not held: somebody else may have it now.
        accounts.users.create(f"{name}-2", CLI, T0, address=f"{name}@example.org", verified=True)
    assert sent() == [
        "bob@example.org: Your account was deleted",
        "eve@example.org: Your account was deleted",
    ]
    assert sent() == accounts.deletion_notices.all() == []
    gone = _user(accounts, "max")
    accounts.users.delete(gone.id, Actor("user", "ada", 1, via="session"), LATER_MS)  # the route tells it
    accounts.users.delete(_user(accounts, "ida").id, CLI, LATER_MS)
    clock.now_ms = LATER_MS + LATEST_MS + 1  # no server ran for a day
    assert sent() == accounts.deletion_notices.all() == []


def _user(accounts: AccountStore, name: str) -> UserRow:
    try:
        return accounts.users.by_name(name)
    except NotFound:
        return accounts.users.create(name, CLI, T0, address=f"{name}@example.org", verified=True)


def test_deleted_teams_and_visible_projects(accounts: AccountStore, sent: Send) -> None:
    accounts.members.add("vision", "bob", "member", CLI, T0)
    entity_id = accounts.teams.by_name("vision").id
    bob = accounts.users.by_name("bob").id
    project = accounts.owned_projects.create(entity_id, "digits", CLI, T0, owner_id=bob)
    sent()
    accounts.owned_projects.update(project.id, CLI, LATER_MS, visibility="public")
    assert sent() == [
        f"{name}@example.org: The visibility of the project vision/digits was changed"
        for name in ("ada", "bob")
    ]
    accounts.teams.delete("vision", CLI, LATER_MS + 1)
    assert sent() == [f"{name}@example.org: The team vision was deleted" for name in ("ada", "bob")]


def test_what_is_not_told(accounts: AccountStore, sent: Send, clock: SetClock) -> None:
    by = Actor("user", "ada", accounts.users.by_name("ada").id, via="session")
    accounts.members.add("vision", "bob", "member", by, LATER_MS)  # the route sends its own mail
    accounts.service_accounts.create("ci", accounts.teams.by_name("vision").id, CLI, LATER_MS)
    assert sent() == []
    accounts.members.remove("vision", "bob", CLI, LATER_MS)
    clock.now_ms = LATER_MS + LATEST_MS + 1  # no server ran for a day
    assert sent() == []


def test_a_user_who_wants_no_mail_about_teams(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.profiles.put(bob.id, {"mail_switched_off": ["teams"]}, CLI, LATER_MS)
    accounts.members.add("vision", "bob", "member", CLI, LATER_MS)
    accounts.credentials.set_password(bob.id, "hashed", CLI, LATER_MS)
    assert sent() == ["bob@example.org: Your password was changed"]
