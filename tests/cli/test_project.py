"""`runvitals project` on a real metadata store."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import AuditFilter
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.cli.test_accounts import Command, as_json, command, where  # noqa: F401


@pytest.fixture
def digits(command: Command, where: str) -> Command:  # noqa: F811
    """A server with the teams vision and speech, and the project vision/digits with a run."""
    for name in ("ada", "bob"):
        command("user", "create", name)
    for team in ("vision", "speech"):
        command("team", "create", team, "--admin", "ada")
    command("team", "add", "vision", "bob")
    command("project", "create", "vision/digits", "--owner", "bob", "--description", "All digits")
    with open_metadata_store(where) as metadata_store:
        sender = Sender(metadata_store.accounts.teams.by_name("vision").id, None, None)
        writer = WriterRegistration("otter-1", "monitor.a.1", "digits", sender=sender)
        metadata_store.writers.join([writer], 1)
    return command


def test_a_project_is_created_shown_and_renamed(digits: Command) -> None:
    shown = as_json(digits("project", "show", "vision/digits", "--json"))
    assert [shown[name] for name in ("owner", "visibility", "description", "runs")] == [
        "bob",
        "team",
        "All digits",
        1,
    ]
    assert "already exists" in digits("project", "create", "vision/digits", status=1)
    assert "expected TEAM/NAME" in digits("project", "show", "digits", status=2)
    digits("project", "rename", "vision/digits", "numbers")
    assert "the project is 'vision/numbers' now" in digits("project", "show", "vision/digits", status=1)
    assert "there is no project" in digits("project", "show", "vision/letters", status=1)
    listed = as_json(digits("project", "list", "vision", "--json"))
    assert [(row["name"], row["runs"]) for row in listed] == [("numbers", 1)]


def test_who_sees_a_project(digits: Command) -> None:
    digits("project", "visibility", "vision/digits", "restricted")
    assert "opened to its team" in digits("project", "visibility", "vision/digits", "public", status=1)
    digits("project", "add", "vision/digits", "ada", "--role", "viewer")
    members = as_json(digits("project", "members", "vision/digits", "--json"))
    assert [(row["name"], row["role"]) for row in members] == [("ada", "viewer")]
    digits("project", "remove", "vision/digits", "ada")
    assert "nobody was added" in digits("project", "members", "vision/digits")
    assert "own space" in digits("project", "create", "bob/x", "--visibility", "restricted", status=1)


def test_a_link_is_shown_once_and_revoked(digits: Command, where: str) -> None:  # noqa: F811
    link = as_json(digits("project", "link", "vision/digits", "--expires", "7d", "--json"))
    path, _, secret = link["path"].partition("#")
    assert path == "/-/shared"
    assert secret not in digits("project", "links", "vision/digits")
    with open_metadata_store(where) as metadata_store:
        links = metadata_store.accounts.guest_links
        assert links.check(secret, link["expires_ms"] - 1) is not None
        assert links.check(secret, link["expires_ms"]) is None
    digits("project", "revoke", str(link["id"]))
    assert "there are no guest links" in digits("project", "links", "vision/digits")


def test_a_project_is_given_away_deleted_and_restored(digits: Command, where: str) -> None:  # noqa: F811
    digits("project", "transfer", "vision/digits", "speech")
    assert "is not the name" in digits("project", "delete", "speech/digits", "--confirm", "digit", status=2)
    assert as_json(digits("project", "delete", "speech/digits", "--confirm", "digits", "--json")) == {
        "runs": 1
    }
    assert "speech has no projects" in digits("project", "list", "speech")
    trash = as_json(digits("project", "list", "speech", "--deleted", "--json"))
    assert [row["name"] for row in trash] == ["digits"]
    assert as_json(digits("project", "restore", "speech/digits", "--json")) == {"runs": 1}
    assert "not in the trash" in digits("project", "restore", "speech/digits", status=1)
    with open_metadata_store(where) as metadata_store:
        events = metadata_store.accounts.audit.page(AuditFilter(), 100)
    actions = {event.action for event in events if event.actor_kind == "cli"}
    assert {"project.create", "project.transfer", "project.delete", "project.restore"} <= actions
