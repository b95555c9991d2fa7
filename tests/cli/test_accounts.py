"""`runvitals user`, `team`, `key` and `invite` on a real metadata store."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration

Command = Callable[..., str]


@pytest.fixture
def where(tmp_path: Path) -> str:
    return str(tmp_path / "catalogue.db")


@pytest.fixture
def command(tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command on the store and returns its output."""

    def run(*words: str, status: int = 0) -> str:
        store = ["--store", str(tmp_path / "store"), "--catalogue", where]
        assert main([*words, *store]) == status
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    return run


def as_json(text: str) -> Any:
    return json.loads(text)


def test_from_an_empty_server_to_a_team_with_a_key(command: Command, where: str) -> None:
    created = as_json(command("user", "create", "Ada", "--admin", "--email", "ada@example.org", "--json"))
    assert (created["name"], created["org_role"], created["state"]) == ("ada", "admin", "active")
    command("user", "create", "bob")
    assert "bob" in command("user", "list")
    command("team", "create", "vision", "--admin", "ada")
    command("team", "add", "vision", "bob", "--role", "viewer")
    command("team", "role", "vision", "bob", "--role", "member")
    members = as_json(command("team", "members", "vision", "--json"))
    assert [(member["name"], member["role"]) for member in members] == [("ada", "admin"), ("bob", "member")]
    key = command("key", "create", "laptop", "--user", "bob", "--scope", "ingest", "--team", "vision").strip()
    with open_metadata_store(where) as metadata_store:
        row = metadata_store.accounts.keys.check(key, created["created_ms"])
        assert row is not None
        assert row.scope == "ingest"
    listed = command("key", "list")
    assert row.public_id in listed
    assert key not in listed
    rotated = as_json(command("key", "rotate", row.public_id, "--overlap", "1h", "--json"))
    command("key", "revoke", rotated["public_id"])
    assert [entry["public_id"] for entry in as_json(command("key", "list", "--json"))] == [row.public_id]
    command("team", "remove", "vision", "bob")
    assert len(as_json(command("team", "members", "vision", "--json"))) == 1


def test_a_team_adopts_what_was_there(command: Command, where: str) -> None:
    with open_metadata_store(where) as metadata_store:
        metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], 1)
    command("team", "create", "vision")
    adopted = as_json(command("team", "adopt", "vision", "--json"))
    assert adopted["projects"] > 0
    assert as_json(command("team", "adopt", "vision", "--json")) == {"projects": 0}
    account = as_json(command("service-account", "create", "vision/ci", "--read-only", "--json"))
    assert account["reads_only"]
    assert command("key", "create", "ci", "--service-account", "vision/ci").startswith("rvt-")


def test_an_invitation(command: Command, where: str) -> None:
    command("user", "create", "ada", "--admin")
    command("team", "create", "vision", "--admin", "ada")
    invitation = as_json(command("invite", "create", "vision", "eve@example.org", "--json"))
    assert invitation["path"].startswith("/-/invitation#")
    assert "eve@example.org" in command("invite", "list", "vision")
    renewed = as_json(command("invite", "resend", str(invitation["id"]), "--json"))
    assert renewed["path"] != invitation["path"]
    command("invite", "revoke", str(invitation["id"]))
    assert command("invite", "list") == "there are no pending invitations\n"
    assert "revoked" in command("invite", "list", "--ended")
    assert "was used, has expired or was revoked" in command(
        "invite", "revoke", str(invitation["id"]), status=1
    )


def test_inviting_an_address_again_prints_a_new_link(command: Command) -> None:
    command("team", "create", "vision")
    links = [command("invite", "create", "vision", "eve@example.org") for _ in range(2)]
    assert links[0] != links[1]
    command("invite", "create", "vision", "eve@example.org", "--role", "viewer")
    (pending,) = as_json(command("invite", "list", "--json"))
    assert (pending["address"], pending["role"]) == ("eve@example.org", "viewer")
    assert "invalid" in command("invite", "create", "vision", "eve@", status=1)


def test_a_key_of_a_service_account_for_its_team(command: Command) -> None:
    command("team", "create", "vision")
    command("team", "create", "speech")
    assert as_json(command("service-account", "create", "vision/ci", "--json"))["keys"] == 0
    key = ("key", "create", "ci", "--service-account", "vision/ci", "--team")
    command(*key, "vision")
    assert "works in that team" in command(*key, "speech", status=1)
    (listed,) = as_json(command("key", "list", "--json"))
    assert (listed["owner"], listed["teams"], listed["scope"]) == ("vision/ci", ["vision"], "write")


def test_usage_in_all_forms(command: Command, where: str) -> None:
    with open_metadata_store(where) as metadata_store:
        metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], 1)
    assert "nothing was used from 2026-11-01 to 2026-11-30" in command("usage", "--month", "2026-11")
    report = as_json(command("usage", "--format", "json", "--by", "project"))
    assert (report["rows"], report["sums"]["runs"]) == ([], 0)
    columns = command("usage", "--format", "csv", "--by", "project,day").splitlines()[0].split(",")
    assert {"project", "day", "runs"} <= set(columns)
    assert command("usage", "--format", "focus").startswith("BilledCost,")
    assert command("usage", "statements").split() == ["id", "number", "month", "of", "state", "total"]
    for words, message in (
        (("usage", "--month", "november"), "expected"),
        (("usage", "--by", "colour"), "colour"),
        (("usage", "--team", "nobody"), "there is no team or user 'nobody'"),
        (("usage", "statements", "show", "7"), "there is no statement '7'"),
    ):
        assert message in command(*words, status=1)


def test_a_password_comes_from_stdin(command: Command, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("argon2", reason="argon2-cffi is not installed")
    from runvitals.server.accounts.passwords import Passwords

    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    created = as_json(command("user", "create", "ada", "--admin", "--password", "--json"))
    with open_metadata_store(where) as metadata_store:
        stored = metadata_store.accounts.credentials.password(created["id"])
    assert stored is not None
    assert Passwords().check("correct horse battery", stored.hash)
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert "too short" in command("user", "password", "ada", status=1)
    assert command("user", "reset-link", "ada").startswith("ADDRESS-OF-THE-SERVER/-/reset#")


def test_errors_are_one_line(command: Command) -> None:
    command("user", "create", "ada", "--admin")
    for words, message in (
        (("user", "create", "ada"), "the name 'ada' is taken"),
        (("user", "create", "admin"), "is reserved"),
        (("user", "set", "ada", "--role", "member"), "ada is the last administrator"),
        (("user", "set", "ada"), "nothing to change"),
        (("user", "suspend", "eve"), "there is no user 'eve'"),
        (("user", "delete", "ada", "--confirm", "eve"), "is not the name 'ada'"),
        (("team", "members", "vision"), "there is no team 'vision'"),
        (("key", "revoke", "nonsense"), "there is no key 'nonsense'"),
        (("key", "create", "x", "--user", "eve"), "there is no user 'eve'"),
    ):
        error = command(*words, status=2 if "--confirm" in words else 1)
        assert message in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("token", "list"), ("user", "list"), ("organisation", "settings"), ("usage", "show")]
)
def test_no_store_is_created_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    store = tmp_path / "typo"
    assert main([*words, "--store", str(store)]) == 1
    assert f"{store / 'catalogue.db'} does not exist: expected --store" in capsys.readouterr().err
    assert not store.exists()
    assert main(["token", "create", "first", "--store", str(store)]) == 0
    assert f"creating a new store: {store / 'catalogue.db'}" in capsys.readouterr().err
    assert main([*words, "--store", str(store)]) == 0


def test_users_and_teams_are_suspended_and_deleted(command: Command) -> None:
    command("user", "create", "ada", "--admin")
    command("user", "create", "bob")
    assert as_json(command("user", "suspend", "bob", "--json"))["state"] == "suspended"
    assert as_json(command("user", "resume", "bob", "--json"))["state"] == "active"
    command("user", "delete", "bob", "--confirm", "bob")
    assert [user["name"] for user in as_json(command("user", "list", "--json"))] == ["ada"]
    command("team", "create", "vision", "--adopt")
    command("team", "delete", "vision", "--confirm", "vision")
    assert as_json(command("team", "list", "--json"))[0]["deleted_ms"] is not None
    command("team", "restore", "vision")
    assert as_json(command("team", "list", "--json"))[0]["deleted_ms"] is None


def test_a_lost_second_factor_is_removed(command: Command, where: str) -> None:
    user_id = as_json(command("user", "create", "ada", "--json"))["id"]
    assert "ada has no second factor" in command("user", "remove-second-factor", "ada", status=1)
    with open_metadata_store(where) as metadata_store:
        metadata_store.accounts.credentials.begin_second_factor(user_id, b"sealed", 1)
        metadata_store.accounts.credentials.confirm_second_factor(user_id, 1, [b"digest"], CLI, 1)
    command("user", "remove-second-factor", "ada")
    with open_metadata_store(where) as metadata_store:
        assert metadata_store.accounts.credentials.second_factor(user_id) is None
        assert metadata_store.accounts.credentials.recovery_codes_left(user_id) == 0


def test_custom_roles(command: Command) -> None:
    command("role", "create", "Labeller", "--base", "viewer", "--add", "run:update")
    described = as_json(command("role", "set", "labeller", "--description", "Labels runs", "--json"))
    assert (described["description"], described["actions"]) == ("Labels runs", ["run:update"])
    changed = as_json(command("role", "set", "labeller", "--add", "report:create", "--json"))
    assert (changed["name"], changed["actions"]) == ("Labeller", ["report:create"])
    assert "Labeller" in command("role", "list")
    assert "cannot add 'fly'" in command("role", "create", "x", "--base", "member", "--add", "fly", status=1)
    assert as_json(command("role", "delete", "Labeller", "--json")) == {"users": 0}


def test_settings_and_the_audit_log(command: Command) -> None:
    command("token", "create", "first")
    command("organisation", "set", "signup=open", "trash_days=7", "allow_public_links=false")
    settings = as_json(command("organisation", "settings", "--json"))
    assert (settings["signup"], settings["trash_days"], settings["allow_public_links"]) == ("open", 7, False)
    for words, message in (
        (("organisation", "set", "trash_days=0"), "expected an integer from 1 to 365"),
        (("organisation", "set", "url=ftp://runs.example.org"), "expected https://host"),
        (("organisation", "release-name", "nobody"), "nobody has, or had, the name"),
    ):
        assert message in command(*words, status=1)
    assert "expected NAME=VALUE" in command("organisation", "set", "trash_days", status=2)
    command("user", "create", "ada", "--admin")
    events = as_json(command("organisation", "audit", "--what", "user.*", "--json"))
    assert [(event["action"], event["actor_name"]) for event in events] == [("user.create", "cli")]
    assert "org.settings" in command("organisation", "audit", "--actor", "cli")


def test_a_secret_for_scim(command: Command, where: str) -> None:
    command("token", "create", "first")
    secret = command("organisation", "scim-secret").strip()
    with open_metadata_store(where) as metadata_store:
        assert metadata_store.accounts.scim.check(secret)
    command("organisation", "scim-secret", "--remove")
    with open_metadata_store(where) as metadata_store:
        assert metadata_store.accounts.scim.secret() is None


def test_tokens_of_a_service_act_as_a_service_account(command: Command, where: str) -> None:
    url = "https://token.example.org"
    command("team", "create", "vision")
    command("service-account", "create", "vision/ci")
    assert "expected https" in command(
        "organisation", "add-issuer", "GitHub", "http://x", "--audience", "a", status=2
    )
    command("organisation", "add-issuer", "GitHub", url, "--audience", "https://runs.example.org")
    (issuer,) = as_json(command("organisation", "issuers", "--json"))
    assert (issuer["url"], issuer["enabled"]) == (url, True)
    unknown = ("organisation", "assign-subject", str(issuer["id"]), "repo:lab/train", "vision/cd")
    assert "cd" in command(*unknown, status=1)
    command("organisation", "assign-subject", str(issuer["id"]), "repo:lab/train", "vision/ci")
    with open_metadata_store(where) as metadata_store:
        accounts = metadata_store.accounts
        account = accounts.jwt_issuers.service_account(issuer["id"], "repo:lab/train")
        assert account is not None
        assert accounts.service_accounts.get(account).name == "ci"
