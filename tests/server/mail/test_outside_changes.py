"""Mail about what identity providers changed, and drafts, sent to a real mail server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.doors.scim.users import SCIM, ScimUsers
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.message import Link, Message, time_text
from runvitals.server.mail.outside_changes import LATEST_MS, OutsideChanges
from runvitals.server.mail.storage.drafts import MailDraft
from runvitals.server.metadata_store import MetadataStore
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
    accounts.members.set_role("vision", "bob", "member", SCIM, LATER_MS + 1)
    accounts.members.remove("vision", "bob", SCIM, LATER_MS + 2)
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


def test_accounts(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.users.update(bob.id, SCIM, LATER_MS, state="suspended")
    accounts.users.update(bob.id, SCIM, LATER_MS, state="active")
    assert sent() == [
        "bob@example.org: Your account was reactivated",
        "bob@example.org: Your account was suspended",
    ]


def test_administrators(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.users.update(bob.id, Actor("user", "bob", bob.id, via="provider"), LATER_MS, org_role="admin")
    assert sent() == [
        "ada@example.org: The role of bob was changed",
        "bob@example.org: The role of bob was changed",
    ]


def test_deleted_users(
    metadata_store: MetadataStore, accounts: AccountStore, sent: Send, clock: SetClock
) -> None:
    users = ScimUsers(metadata_store, SCIM, LATER_MS, "https://runs.lab.example")
    users.delete(accounts.users.by_name("bob"))
    # The address is not held: somebody else may have it now.
    accounts.users.create("bob-2", CLI, T0, address="bob@example.org", verified=True)
    assert sent() == ["bob@example.org: Your account was deleted"]
    assert sent() == accounts.mail_drafts.all() == []
    users.delete(accounts.users.create("ida", CLI, T0, address="ida@example.org", verified=True))
    users.delete(accounts.users.create("max", CLI, T0, address="max@example.org"))  # not verified
    clock.now_ms = LATER_MS + LATEST_MS + 1  # no server ran for a day
    assert sent() == accounts.mail_drafts.all() == []


def test_deleted_teams(accounts: AccountStore, sent: Send) -> None:
    accounts.members.add("vision", "bob", "member", CLI, T0)
    accounts.teams.delete("vision", SCIM, LATER_MS)
    assert sent() == [f"{name}@example.org: The team vision was deleted" for name in ("ada", "bob")]


def test_what_is_not_told(accounts: AccountStore, sent: Send, clock: SetClock) -> None:
    by = Actor("user", "ada", accounts.users.by_name("ada").id, via="session")
    accounts.members.add("vision", "bob", "member", by, LATER_MS)  # the route sends its own mail
    accounts.members.set_role("vision", "bob", "viewer", CLI, LATER_MS)  # the command leaves a draft
    accounts.service_accounts.create("ci", accounts.teams.by_name("vision").id, SCIM, LATER_MS)
    assert sent() == []
    accounts.members.remove("vision", "bob", SCIM, LATER_MS)
    clock.now_ms = LATER_MS + LATEST_MS + 1  # no server ran for a day
    assert sent() == []


def test_a_user_who_wants_no_mail_about_teams(accounts: AccountStore, sent: Send) -> None:
    bob = accounts.users.by_name("bob")
    accounts.profiles.put(bob.id, {"mail_switched_off": ["teams"]}, CLI, LATER_MS)
    accounts.members.add("vision", "bob", "member", SCIM, LATER_MS)
    accounts.users.update(bob.id, SCIM, LATER_MS, state="suspended")
    assert sent() == ["bob@example.org: Your account was suspended"]


def test_a_draft_comes_as_it_was_written(accounts: AccountStore, sent: Send, receiver: Receiver) -> None:
    written = message("Tuesday", link=Link("Settings", "/-/settings"), topic="teams", security=True)
    assert accounts.mail_drafts.send(written, "bob@example.org", LATER_MS, time_zone="Asia/Tokyo")
    (draft,) = accounts.mail_drafts.all()
    assert draft == MailDraft(draft.id, "bob@example.org", written, "Asia/Tokyo", LATER_MS)
    assert sent() == ["bob@example.org: Tuesday"]
    text = str(receiver.received[-1])
    assert "2027-01-15 17:01 Asia/Tokyo" in text
    assert "https://runs.lab.example/-/settings" in text
    assert sent() == []


def test_no_draft_holds_a_secret(accounts: AccountStore) -> None:
    secret = message("Join", link=Link("Join", "/-/invitation#secret"))
    assert not accounts.mail_drafts.send(secret, "bob@example.org", LATER_MS)
    assert accounts.mail_drafts.all() == []


def message(subject: str, **more: Any) -> Message:
    return Message("trial", subject, (f"It was {time_text(LATER_MS)}.",), **more)
