"""`runvitals tag`, `rename`, `note` and `delete`, of this machine and of a server; and `runs` of a server."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from tests.not_root import folder_without_root
from tests.readers.journals.journals import T0, Monitor
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.conftest import with_team
from tests.server.projects.routes.conftest import add_run

Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command; returns what it prints, or its error."""
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        assert main(list(words)) == status
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    return run


def listed(command: Command, *more: str) -> list[dict[str, Any]]:
    return json.loads(command("runs", "--json", *more))


def test_a_folder_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder_without_root() as folder:
        monkeypatch.setenv("RUNVITALS_DIR", str(folder))
        for name in ("first", "second"):
            Monitor(folder, name, start_ms=T0).end(T0 + 1000, "finished", exit_code=0)
        (folder / "runs" / "first").chmod(0o500)
        assert main(["tag", "first", "second", "--add", "good"]) == 1
        (folder / "runs" / "first").chmod(0o700)
    captured = capsys.readouterr()
    assert captured.out == "tagged second\n"
    assert f"{folder}/runs/first: Permission denied: the run was not changed" in captured.err


def test_runs_of_this_machine(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("first", "second")):
        Monitor(tmp_path, name, start_ms=T0 + number).end(T0 + 1000, "finished", exit_code=0)
    assert command("tag", "first", "sec", "--add", "good", "--add", "old") == "tagged first\ntagged second\n"
    command("tag", "second", "--remove", "old", "--add", "good")
    command("rename", "first", "baseline")
    command("note", "baseline", "One.")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Two."))
    command("note", "baseline", "-", "--append")
    second, first = listed(command)
    assert (second["tags"], first["tags"]) == (["good"], ["good", "old"])
    assert (first["name"], first["notes"]) == ("baseline", "One.\n\nTwo.")
    command("delete", "second")
    assert [run["id"] for run in listed(command)] == ["first"]
    command("delete", "--restore", "second")
    assert [run["id"] for run in listed(command, "--sort", "id", "--limit", "1")] == ["first"]
    assert [run["id"] for run in listed(command, "--sort=-id")] == ["second", "first"]


def test_what_is_not_changed(tmp_path: Path, command: Command) -> None:
    Monitor(tmp_path, "first").end(T0 + 1000, "finished", exit_code=0)
    assert "no run 'nothing'" in command("tag", "nothing", "first", "--add", "good", status=1)
    assert listed(command)[0]["tags"] == ["good"]  # the others are changed
    assert "expected --add TAG or --remove TAG" in command("tag", "first", status=2)
    assert "at most 256" in command("rename", "first", "x" * 257, status=1)
    assert "at most 256" in command("tag", "first", "--add", "x" * 257, status=1)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AccountsServer]:
    """A server whose team vision has a run of bob, whose key is in the environment."""
    with accounts_server(tmp_path / "server", fill=with_team) as running:
        add_run(running, "run-bob", "digits", "bob")
        user = running.accounts.users.by_name("bob")
        secret, _ = running.accounts.keys.create("laptop", CLI, T0, user_id=user.id, scope="full")
        running.app.services.access.rights_changed()
        monkeypatch.setenv("RUNVITALS_SERVER", running.url)
        monkeypatch.setenv("RUNVITALS_TOKEN", secret)
        yield running


def test_runs_of_a_server(command: Command, server: AccountsServer) -> None:
    there = ["--server", server.url]
    command("tag", "run-bob", "--add", "good", *there)
    command("rename", "vision/run-bob", "baseline", *there)
    command("note", "run-bob", "One.", *there)
    command("note", "run-bob", "Two.", "--append", *there)
    (run,) = listed(command, "name:baseline", *there)
    assert (run["id"], run["tags"]) == ("run-bob", ["good"])
    assert server.ask("bob", "GET", "runs/run-bob")["notes"] == "One.\n\nTwo."
    assert "baseline" in command("runs", *there)
    command("delete", "run-bob", *there)
    assert "no runs of" in command("runs", *there)
    command("delete", "--restore", "run-bob", *there)
    assert "nothing" in command("delete", "nothing", *there, status=1)
