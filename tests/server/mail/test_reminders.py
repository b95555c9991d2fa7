"""Mail before something ends, sent to a real mail server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.reminders import IN_USE_MS, Reminders
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.mail.conftest import T0, SetClock
from tests.server.mail.receiver import Receiver

Sent = Callable[[int], list[str]]
DAY_MS = 86_400_000
END_MS = T0 + 60 * DAY_MS


@pytest.fixture
def accounts(metadata_store: MetadataStore) -> AccountStore:
    return metadata_store.accounts


@pytest.fixture
def ada(accounts: AccountStore) -> UserRow:
    return accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True, org_role="admin")


@pytest.fixture
def bob(accounts: AccountStore) -> UserRow:
    return accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)


@pytest.fixture
def sent(accounts: AccountStore, mailer: Mailer, clock: SetClock, receiver: Receiver) -> Sent:
    """Lets two servers remind so many days before `END_MS`; returns what is new."""
    servers = [Reminders(accounts, mailer), Reminders(accounts, mailer)]

    def after(days_left: int) -> list[str]:
        clock.now_ms = END_MS - days_left * DAY_MS
        before = len(receiver.received)
        for server in servers:
            server.send_due(clock.now_ms)
        mailer.send_due()
        return sorted(f"{mail['to']}: {mail['subject']}" for mail in receiver.received[before:])

    return after


def use(accounts: AccountStore, secret: str, days_left: int) -> None:
    assert accounts.keys.check(secret, END_MS - days_left * DAY_MS) is not None


def test_a_key_in_use_ends(accounts: AccountStore, bob: UserRow, sent: Sent, receiver: Receiver) -> None:
    secret, key = accounts.keys.create("laptop", CLI, T0, user_id=bob.id, expires_ms=END_MS)
    accounts.keys.create("unused", CLI, T0, user_id=bob.id, expires_ms=END_MS)
    revoked, row = accounts.keys.create("revoked", CLI, T0, user_id=bob.id, expires_ms=END_MS)
    use(accounts, secret, 20)
    use(accounts, revoked, 20)
    accounts.keys.revoke(row.id, CLI, T0)
    assert sent(8) == []
    expected = ["bob@example.org: The API key laptop expires soon"]
    assert sent(7) == expected
    assert [sent(6), sent(2)] == [[], []]
    assert sent(1) == expected
    assert sent(0) == []
    text = receiver.received[0].get_body(("plain",))
    assert text is not None
    assert f"({key.public_id}…) of bob stops working on " in text.get_content()
    assert "https://runs.lab.example/-/settings/keys" in text.get_content()
    assert receiver.received[0]["list-unsubscribe"] == "<https://runs.lab.example/-/settings/emails>"


def test_a_key_that_nobody_uses_ends_silently(accounts: AccountStore, bob: UserRow, sent: Sent) -> None:
    secret, _ = accounts.keys.create("laptop", CLI, T0, user_id=bob.id, expires_ms=END_MS)
    use(accounts, secret, 7 + IN_USE_MS // DAY_MS + 1)
    assert sent(7) == []


def test_a_key_that_was_rotated_is_mentioned_only_if_it_is_still_used(
    accounts: AccountStore, bob: UserRow, sent: Sent
) -> None:
    for name in ("replaced", "forgotten"):
        secret, key = accounts.keys.create(name, CLI, T0, user_id=bob.id)
        use(accounts, secret, 4)
        accounts.keys.rotate(key.id, CLI, END_MS - 3 * DAY_MS, overlap_ms=3 * DAY_MS)
    use(accounts, secret, 2)
    assert sent(2) == []  # it had only three days from the start
    assert sent(1) == ["bob@example.org: The API key forgotten expires soon"]


def test_keys_of_service_accounts_go_to_administrators(
    accounts: AccountStore, ada: UserRow, bob: UserRow, sent: Sent, receiver: Receiver
) -> None:
    eve = accounts.users.create("eve", CLI, T0, address="eve@example.org", verified=True)
    team = accounts.teams.create("vision", CLI, T0, administrator=eve.id)
    accounts.members.add("vision", "bob", "member", CLI, T0)
    ci = accounts.service_accounts.create("ci", team.id, CLI, T0)
    cluster = accounts.service_accounts.create("cluster", None, CLI, T0, default_team_id=team.id)
    for account in (ci, cluster):
        secret, _ = accounts.keys.create(
            account.name, CLI, T0, service_account_id=account.id, expires_ms=END_MS
        )
        use(accounts, secret, 9)
    assert sent(7) == [
        "ada@example.org: The API key cluster expires soon",
        "eve@example.org: The API key ci expires soon",
    ]
    links = [str(mail.get_body(("plain",))) for mail in receiver.received]
    assert any("https://runs.lab.example/vision/-/settings/service-accounts" in text for text in links)
    assert any("https://runs.lab.example/-/organisation/service-accounts" in text for text in links)
    accounts.teams.delete("vision", CLI, T0)
    assert sent(1) == ["ada@example.org: The API key cluster expires soon"]


def test_a_membership_ends(accounts: AccountStore, ada: UserRow, bob: UserRow, sent: Sent) -> None:
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "member", CLI, T0, expires_ms=END_MS)
    expected = ["bob@example.org: Your membership in the team vision ends soon"]
    assert sent(7) == expected
    later_ms = END_MS + 30 * DAY_MS
    accounts.members.set_end("vision", "bob", later_ms, CLI, END_MS - 5 * DAY_MS)
    assert sent(1) == []
    assert sent(-23) == expected  # a week before the new end


def test_a_guest_link_expires(
    accounts: AccountStore,
    metadata_store: MetadataStore,
    ada: UserRow,
    bob: UserRow,
    sent: Sent,
) -> None:
    team = accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "member", CLI, T0)
    sender = Sender(team.id, author_id=bob.id)
    (writer,) = metadata_store.writers.join(
        [WriterRegistration("otter-1", "monitor.a.1", "digits", sender=sender)], T0
    )
    (project,) = accounts.owned_projects.ids_of(team.id)
    by = Actor("user", "bob", bob.id)
    accounts.guest_links.create(by, T0, run_id=writer.run_id, expires_ms=END_MS)
    accounts.guest_links.create(by, T0, project_id=project, expires_ms=END_MS)
    accounts.guest_links.create(by, END_MS - DAY_MS // 2, run_id=writer.run_id, expires_ms=END_MS)
    _, revoked = accounts.guest_links.create(by, T0, run_id=writer.run_id, expires_ms=END_MS)
    accounts.guest_links.revoke(revoked.id, CLI, T0)
    assert sent(7) == [
        "bob@example.org: A guest link to the project digits expires soon",
        "bob@example.org: A guest link to the run otter-1 expires soon",
    ]
    accounts.members.remove("vision", "bob", CLI, T0)
    assert sent(1) == []


def test_an_account_will_be_deleted(accounts: AccountStore, ada: UserRow, bob: UserRow, sent: Sent) -> None:
    accounts.users.request_deletion(bob.id, CLI, END_MS - 30 * DAY_MS, 30 * DAY_MS)
    expected = ["bob@example.org: Your account will be deleted soon"]
    assert [sent(8), sent(7), sent(3), sent(1)] == [[], expected, [], expected]
    accounts.users.cancel_deletion(bob.id, CLI, T0)
    accounts.users.request_deletion(bob.id, CLI, END_MS - 7 * DAY_MS, 7 * DAY_MS)
    assert sent(6) == []  # the mail about the request was sent a day ago


def test_what_a_user_wants(accounts: AccountStore, ada: UserRow, bob: UserRow, sent: Sent) -> None:
    work = accounts.emails.add(bob.id, "bob@work.example", CLI, T0)
    accounts.emails.verify(work.id, CLI, T0)
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    accounts.members.add("vision", "bob", "member", CLI, T0, expires_ms=END_MS)
    accounts.users.request_deletion(bob.id, CLI, T0, END_MS - T0)
    accounts.profiles.put(bob.id, {"mail_address": "bob@work.example"}, CLI, T0)
    deletion = "bob@example.org: Your account will be deleted soon"  # always to the primary address
    assert sent(7) == [deletion, "bob@work.example: Your membership in the team vision ends soon"]
    accounts.profiles.put(bob.id, {"mail_switched_off": ["reminders"]}, CLI, T0)
    assert sent(1) == [deletion]


def test_without_a_mail_server_nothing_is_lost(
    accounts: AccountStore,
    bob: UserRow,
    new_mailer: Callable[[str], Mailer],
    sent: Sent,
) -> None:
    secret, _ = accounts.keys.create("laptop", CLI, T0, user_id=bob.id, expires_ms=END_MS)
    use(accounts, secret, 9)
    Reminders(accounts, new_mailer("")).send_due(END_MS - 7 * DAY_MS)
    assert sent(6) == ["bob@example.org: The API key laptop expires soon"]
