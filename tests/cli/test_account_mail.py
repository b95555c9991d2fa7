"""Mail about what commands changed: drafts in the same commit, which a server that sends mail takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.server.clock import Clock
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.outside_changes import OutsideChanges
from runvitals.server.mail.storage.drafts import MailDraftTable
from runvitals.server.metadata_store import open_metadata_store
from tests.cli.test_accounts import Command, as_json, command, where  # noqa: F401
from tests.server.mail.receiver import Receiver


@pytest.fixture
def people(command: Command) -> Command:  # noqa: F811
    """ada administers the organisation and the team vision; bob is a user."""
    command("user", "create", "ada", "--admin", "--email", "ada@example.org")
    command("user", "create", "bob", "--email", "bob@example.org")
    command("team", "create", "vision", "--admin", "ada")
    return command


def drafts(where: str) -> list[str]:  # noqa: F811
    """Takes the drafts; returns their subjects with their recipients."""
    with open_metadata_store(where) as metadata_store:
        table = metadata_store.accounts.mail_drafts
        mail_drafts = table.all()
        for draft in mail_drafts:
            table.remove(draft.id)
    return sorted(f"{draft.address}: {draft.message.subject}" for draft in mail_drafts)


def test_new_users_and_teams_get_none(people: Command, where: str) -> None:  # noqa: F811
    assert drafts(where) == []


def test_members_of_teams(people: Command, where: str) -> None:  # noqa: F811
    people("team", "add", "vision", "bob", "--role", "viewer")
    assert drafts(where) == ["bob@example.org: You are now in the team vision"]
    people("team", "role", "vision", "bob", "--role", "member")
    people("team", "remove", "vision", "bob")
    assert drafts(where) == [
        "bob@example.org: You are no longer in the team vision",
        "bob@example.org: Your role in the team vision was changed",
    ]


def test_accounts_and_keys(people: Command, where: str) -> None:  # noqa: F811
    people("user", "suspend", "bob")
    people("user", "resume", "bob")
    key = as_json(people("key", "create", "laptop", "--user", "bob", "--json"))
    people("key", "revoke", key["public_id"])
    people("key", "revoke", key["public_id"])  # once more has no effect
    assert drafts(where) == [
        "bob@example.org: A new API key was created",
        "bob@example.org: An API key was revoked",
        "bob@example.org: Your account was reactivated",
        "bob@example.org: Your account was suspended",
    ]
    people("user", "delete", "bob", "--confirm", "bob")
    assert drafts(where) == ["bob@example.org: Your account was deleted"]


def test_passwords_and_second_factors(
    people: Command,
    where: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("argon2", reason="argon2-cffi is not installed")
    monkeypatch.setattr(
        "runvitals.cli.database_actions.read_password", lambda prompt: "correct horse battery"
    )
    people("user", "password", "bob")
    with open_metadata_store(where) as metadata_store:
        accounts = metadata_store.accounts
        accounts.credentials.begin_second_factor(accounts.users.by_name("bob").id, b"sealed", 1)
    people("user", "remove-second-factor", "bob")
    assert drafts(where) == [
        "bob@example.org: Your password was changed",
        "bob@example.org: Your second factor was removed",
    ]


def test_the_organisation(people: Command, where: str) -> None:  # noqa: F811
    people("organisation", "set", "support_contact=help@example.org")
    assert drafts(where) == []
    people("organisation", "set", "signup=open")
    assert drafts(where) == ["ada@example.org: Settings of the organisation were changed"]
    people("user", "set", "bob", "--role", "admin")
    assert drafts(where) == [
        "ada@example.org: The role of bob was changed",
        "bob@example.org: The role of bob was changed",
    ]


def test_deleted_teams_and_visible_projects(people: Command, where: str) -> None:  # noqa: F811
    people("team", "add", "vision", "bob")
    people("project", "create", "vision/digits", "--owner", "bob")
    drafts(where)
    people("project", "visibility", "vision/digits", "public")
    assert drafts(where) == [
        f"{name}@example.org: The visibility of the project vision/digits was changed"
        for name in ("ada", "bob")
    ]
    people("team", "delete", "vision", "--confirm", "vision")
    assert drafts(where) == [f"{name}@example.org: The team vision was deleted" for name in ("ada", "bob")]


def test_invitations_are_passed_on_by_whoever_made_them(people: Command, where: str) -> None:  # noqa: F811
    assert "/-/invitation#" in people("invite", "create", "vision", "eve@example.org")
    assert drafts(where) == []


def test_what_is_refused_leaves_no_mail(people: Command, where: str) -> None:  # noqa: F811
    people("team", "role", "vision", "ada", "--role", "viewer", status=1)  # its last administrator
    people("user", "delete", "ada", "--confirm", "ada", status=1)
    assert drafts(where) == []


def test_a_change_is_not_made_without_its_mail(
    people: Command,
    where: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise OSError("the disk is full")

    monkeypatch.setattr(MailDraftTable, "send", fail)
    for words in (
        ("user", "suspend", "bob"),
        ("user", "delete", "bob", "--confirm", "bob"),
        ("team", "add", "vision", "bob"),
        ("team", "delete", "vision", "--confirm", "vision"),
        ("key", "create", "laptop", "--user", "bob"),
    ):
        assert "the disk is full" in people(*words, status=1)
    users = {user["name"]: user for user in as_json(people("user", "list", "--json"))}
    assert (users["bob"]["state"], users["bob"]["teams"]) == ("active", [])
    assert as_json(people("team", "list", "--json"))[0]["deleted_ms"] is None
    assert as_json(people("key", "list", "--json")) == []


def test_a_server_sends_them(people: Command, where: str, tmp_path: Path) -> None:  # noqa: F811
    people("user", "suspend", "bob")
    people("team", "delete", "vision", "--confirm", "vision")
    with Receiver() as receiver, open_metadata_store(where) as metadata_store:
        environment = {
            "RUNVITALS_SMTP_URL": receiver.url,
            "RUNVITALS_MAIL_FROM": "runs@lab.example",
            "RUNVITALS_URL": "https://runs.lab.example/",
        }
        clock = Clock()
        mailer = Mailer(metadata_store, SecretBox({"k": bytes(32)}), clock, environment)
        servers = [OutsideChanges(metadata_store.accounts, mailer) for _ in range(2)]
        for server in servers:
            server.send_due(clock())
        mailer.send_due()
        received = sorted(f"{mail['to']}: {mail['subject']}" for mail in receiver.received)
        texts = "".join(map(str, receiver.received))
    assert received == [
        "ada@example.org: The team vision was deleted",
        "bob@example.org: Your account was suspended",
    ]
    assert "The operator of the server" in texts


def test_nothing_is_drafted_by_a_command_that_fails_before(people: Command, where: str) -> None:  # noqa: F811
    assert main(["user", "suspend", "eve", "--catalogue", where]) == 1
    assert drafts(where) == []
