"""What the commands about accounts print, and what they do to a server process that is running."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.cli import main
from tests.cli.test_server import serving
from tests.patience import PATIENCE_S, eventually

Command = Callable[..., list[str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The store of a server process, and its address. ada administers it and the team vision, with bob."""
    folder = tmp_path_factory.mktemp("server") / "store"
    with serving(folder) as (_, client):
        store = ["--store", str(folder)]
        for words in (
            ("user", "create", "ada", "--admin", "--email", "ada@example.org", "--display-name", "Ada L."),
            ("user", "create", "bob", "--email", "bob@example.org"),
            ("team", "create", "vision", "--admin", "ada"),
            ("team", "add", "vision", "bob", "--role", "viewer"),
        ):
            assert main([*words, *store]) == 0
        yield folder, str(client.base_url).rstrip("/")


@pytest.fixture
def command(running: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command on the server's store; returns the lines that it prints, or its error."""

    def run(*words: str, status: int = 0) -> list[str]:
        capsys.readouterr()
        assert main([*words, "--store", str(running[0])]) == status
        captured = capsys.readouterr()
        return (captured.err if status else captured.out).splitlines()

    return run


@pytest.fixture
def answers(running: tuple[Path, str]) -> Callable[[str], int]:
    """The status of the server's answer to a key that asks who it is."""

    def ask(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.get(f"{running[1]}/api/v1/account", headers=headers, timeout=PATIENCE_S).status_code

    return ask


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def records(command: Command, *words: str) -> Any:
    return json.loads("\n".join(command(*words, "--json")))


def test_users(command: Command, answers: Callable[[str], int]) -> None:
    head, ada, bob = command("user", "list")
    assert cells(head) == ["USER", "NAME", "E-MAIL", "ROLE", "ACCESS", "TEAMS", "STATE", "LAST ACTIVE"]
    assert cells(ada) == ["ada", "Ada L.", "ada@example.org", "admin", "full", "vision", "active", "-"]
    assert cells(bob)[:3] == ["bob", "bob", "bob@example.org"]
    assert records(command, "user", "list")[0]["email"] == "ada@example.org"
    (key,) = command("key", "create", "laptop", "--user", "bob")
    eventually(lambda: answers(key) == 200)
    assert command("user", "suspend", "bob") == ["bob is suspended; `runvitals user resume bob` ends that"]
    eventually(lambda: answers(key) == 401)
    assert command("user", "resume", "bob") == ["bob may sign in again"]
    eventually(lambda: answers(key) == 200)
    assert command("user", "set", "bob", "--access", "viewer") == [
        "bob has now: role member, access viewer, billing none"
    ]
    (link,) = command("user", "reset-link", "bob")
    assert link.startswith("ADDRESS-OF-THE-SERVER/-/reset#")
    command("user", "create", "mallory")
    assert command("user", "delete", "mallory", "--confirm", "mallory") == ["the account mallory is deleted"]


def test_teams(command: Command) -> None:
    head, vision = command("team", "list")
    assert cells(head) == ["TEAM", "NAME", "MEMBERS", "NEW PROJECTS", "CREATED", "STATE"]
    assert cells(vision)[:4] == ["vision", "vision", "2", "team"]
    head, ada, bob = command("team", "members", "vision")
    assert cells(head) == ["USER", "NAME", "E-MAIL", "ROLE", "JOINED", "LAST ACTIVE", "ENDS"]
    assert cells(ada)[:4] == ["ada", "Ada L.", "ada@example.org", "admin"]
    assert cells(bob)[3] == "viewer"
    assert command("team", "role", "vision", "bob", "--role", "member") == [
        "bob is member in the team vision now"
    ]
    assert command("team", "create", "empty") == ["created the team empty without members"]
    assert command("team", "members", "empty") == [
        "the team empty has no members; `runvitals team add empty USER` adds one"
    ]
    assert "runvitals team restore empty" in command("team", "delete", "empty", "--confirm", "empty")[0]
    assert cells(command("team", "list")[1])[-1].startswith("in the trash: ")
    assert command("team", "restore", "empty") == ["the team empty is back"]
    command("team", "delete", "empty", "--confirm", "empty")


def test_keys(command: Command, answers: Callable[[str], int]) -> None:
    (key,) = command("key", "create", "cluster", "--user", "ada", "--scope", "read", "--team", "vision")
    eventually(lambda: answers(key) == 200)
    (row,) = [row for row in records(command, "key", "list") if row["name"] == "cluster"]
    lines = command("key", "list")
    assert cells(lines[0]) == [
        "KEY", "NAME", "OWNER", "SCOPE", "ONLY IN", "CREATED", "LAST USED", "EXPIRES", "STATE",
    ]  # fmt: skip
    (shown,) = [cells(line) for line in lines if "cluster" in line]
    assert shown[:5] == [row["public_id"], "cluster", "ada", "read", "vision"]
    assert shown[-1] == "valid"
    assert (row["owner"], row["teams"]) == ("ada", ["vision"])
    (rotated,) = command("key", "rotate", row["public_id"], "--overlap", "1h")
    eventually(lambda: answers(rotated) == 200)
    assert command("key", "revoke", row["public_id"]) == [
        f"the key cluster ({row['public_id']}) no longer works"
    ]
    eventually(lambda: answers(key) == 401)
    assert key not in "\n".join(command("key", "list", "--revoked"))


def test_service_accounts(command: Command, answers: Callable[[str], int]) -> None:
    assert command("service-account", "list") == [
        "there are no service accounts; `runvitals service-account create TEAM/NAME` creates one"
    ]
    assert command("service-account", "create", "vision/ci", "--read-only")[0].startswith(
        "created the service account vision/ci"
    )
    (key,) = command("key", "create", "runner", "--service-account", "vision/ci")
    eventually(lambda: answers(key) == 200)
    head, ci = command("service-account", "list", "vision")
    assert cells(head) == ["ACCOUNT", "RUNS GO TO", "MAY", "KEYS", "LAST USED", "CREATED", "STATE"]
    assert cells(ci)[:4] == ["vision/ci", "vision", "read", "1"]
    command("service-account", "disable", "vision/ci")
    eventually(lambda: answers(key) == 401)
    assert "disabled since" in command("service-account", "list")[1]
    command("service-account", "enable", "vision/ci")
    eventually(lambda: answers(key) == 200)
    command("service-account", "delete", "vision/ci", "--confirm", "vision/ci")
    eventually(lambda: answers(key) == 401)


def test_invitations(command: Command, running: tuple[Path, str]) -> None:
    assert command("invite", "list") == ["there are no pending invitations"]
    (link,) = command("invite", "create", "vision", "eve@example.org", "--role", "viewer")
    secret = link.removeprefix("/-/invitation#")
    shown = httpx.post(f"{running[1]}/api/v1/invitations/show", json={"token": secret}, timeout=PATIENCE_S)
    assert (shown.status_code, shown.json()["team"]) == (200, "vision")
    head, eve = command("invite", "list", "vision")
    assert cells(head) == ["ID", "FOR", "TEAM", "ROLE", "INVITED BY", "SENT", "EXPIRES", "STATE"]
    assert cells(eve)[1:5] == ["eve@example.org", "vision", "viewer", "the command line"]
    number = cells(eve)[0]
    command("organisation", "set", "url=https://runs.example.org")
    assert command("invite", "resend", number)[0].startswith("https://runs.example.org/-/invitation#")
    assert command("invite", "revoke", number) == [f"the link of invitation {number} no longer works"]
    assert cells(command("invite", "list", "--ended")[1])[-1] == "revoked"


def test_roles(command: Command) -> None:
    assert command("role", "list") == [
        "there are no custom roles; `runvitals role create NAME --base viewer` creates one"
    ]
    assert command("role", "create", "Labeller", "--base", "viewer", "--add", "run:update") == [
        "created the role Labeller: viewer, and in addition run:update"
    ]
    command("team", "role", "vision", "bob", "--role", "Labeller")
    head, labeller = command("role", "list")
    assert cells(head) == ["ROLE", "BASE", "ADDS", "MEMBERS", "TEAMS", "DESCRIPTION"]
    assert cells(labeller) == ["Labeller", "viewer", "run:update", "1", "1", "-"]
    assert cells(command("team", "members", "vision")[2])[3] == "Labeller"
    assert command("role", "delete", "Labeller") == ["deleted the role; 1 members have its base role now"]


def test_what_a_key_may_do_is_done_at_the_server(
    command: Command,
    running: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: Callable[[str], int],
) -> None:
    (key,) = command("key", "create", "admin", "--user", "ada", "--scope", "full")
    eventually(lambda: answers(key) == 200)
    monkeypatch.setenv("RUNVITALS_SERVER", running[1])
    monkeypatch.setenv("RUNVITALS_TOKEN", key)

    def at_server(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        assert main([*words, "--server", running[1]]) == status
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    created = at_server("role", "create", "Tagger 2 ä", "--base", "viewer", "--add", "run:update", "--json")
    assert json.loads(created) == {
        "id": json.loads(created)["id"],
        "name": "Tagger 2 ä",
        "description": "",
        "base": "viewer",
        "actions": ["run:update"],
        "users": 0,
        "teams": 0,
    }
    (listed,) = json.loads(at_server("role", "list", "--json"))
    assert listed == json.loads(created) == records(command, "role", "list")[0]
    assert "Tagger 2 ä" in at_server("role", "list")
    assert at_server("team", "role", "vision", "bob", "--role", "Tagger 2 ä") == (
        "bob is Tagger 2 ä in the team vision now\n"
    )
    for words in (("user", "list"), ("team", "members", "vision"), ("service-account", "list", "vision")):
        assert at_server(*words).splitlines() == command(*words)
        shown = {row["name"] for row in json.loads(at_server(*words, "--json"))}
        assert shown == {row["name"] for row in records(command, *words)}
    assert at_server("role", "delete", "Tagger 2 ä") == "deleted the role; 1 members have its base role now\n"
    assert "there is no role 'Tagger'" in at_server("role", "delete", "Tagger", status=1)
    command("project", "create", "vision/letters")
    assert at_server("project", "list", "vision").splitlines() == command("project", "list", "vision")
    shared = at_server("project", "link", "vision/letters")
    assert shared.startswith("/-/shared#")
    assert at_server("project", "delete", "vision/letters", "--confirm", "letters").startswith(
        "the project is in the trash, with 0 runs"
    )
    (deleted,) = json.loads(at_server("project", "list", "vision", "--deleted", "--json"))
    assert deleted["name"] == "letters"
    audit = records(command, "organisation", "audit", "--limit", "20")
    by = {event["action"]: event["actor_name"] for event in reversed(audit)}
    assert (by["role.delete"], by["project.delete"], by["project.create"]) == ("ada", "ada", "cli")
    (weak,) = command("key", "create", "weak", "--user", "bob")
    eventually(lambda: answers(weak) == 200)
    monkeypatch.setenv("RUNVITALS_TOKEN", weak)
    assert "you may not do this" in at_server("role", "create", "x", "--base", "viewer", status=1)


@pytest.mark.parametrize("words", [("user", "suspend", "bob"), ("team", "delete", "vision"), ("key", "list")])
def test_what_no_key_may_do_is_done_where_the_store_is(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main([*words, "--server", "http://127.0.0.1:1"])


def test_the_organisation(command: Command) -> None:
    assert command("organisation", "set", "trash_days=7") == ["trash_days: 7"]
    assert "trash_days: 7" in command("organisation", "settings")
    head, newest, *_ = command("organisation", "audit")
    assert cells(head) == ["TIME", "ACTION", "BY", "FROM", "KEY", "IN", "ON", "OUTCOME"]
    assert cells(newest)[1:4] == ["org.settings", "cli", "cli"]
    assert command("organisation", "issuers") == ["no tokens of other services are accepted"]


def test_whoami(
    command: Command,
    running: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: Callable[[str], int],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (key,) = command("key", "create", "laptop", "--user", "ada")
    eventually(lambda: answers(key) == 200)
    monkeypatch.setenv("RUNVITALS_SERVER", running[1])
    monkeypatch.setenv("RUNVITALS_TOKEN", key)
    assert main(["whoami"]) == 0
    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:5] == [
        ["user", "ada (Ada L.)"],
        ["e-mail", "ada@example.org"],
        ["organisation", "administrator"],
        ["teams", "vision (admin)"],
    ]
    assert lines[0][0] == "server"
    assert lines[6][0] == "key"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("user", "suspend", "eve"), "there is no user 'eve'; expected one of ada, bob"),
        (("team", "members", "speech"), "there is no team 'speech'; expected one of vision"),
        (("team", "restore", "vision"), "there is no team 'vision' in the trash"),
        (("team", "role", "vision", "bob", "--role", "boss"), "expected viewer, member, admin or a custom"),
        (
            ("key", "create", "x", "--service-account", "ci"),
            "there is no service account 'ci'; there is none",
        ),
        (("key", "revoke", "nonsense"), "there is no key 'nonsense'"),
        (("service-account", "create", "ci"), "invalid service account 'ci'; expected TEAM/NAME"),
        (("invite", "revoke", "99"), "there is no invitation 99"),
        (("role", "create", "x", "--base", "member", "--add", "fly"), "cannot add 'fly'"),
    ],
)
def test_errors_say_what_is_expected(command: Command, words: tuple[str, ...], message: str) -> None:
    (line,) = command(*words, status=1)
    assert message in line
