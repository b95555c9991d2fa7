"""Commands that the user of a host registered."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runvitals.relay.host_commands import HostCommands
from tests.patience import eventually
from tests.processes import has_ended


@pytest.fixture
def ask(tmp_path: Path) -> Callable[[int, str], str]:
    """Requests a command and returns what was reported; "" if nothing was."""
    reported: list[tuple[str, str]] = []
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ["PATH"], "SECRET_TOKEN": "hidden"}
    commands = HostCommands(environ, lambda run, text: reported.append((run, text)))
    (tmp_path / "run").mkdir()

    def request(number: int, name: str) -> str:
        reported.clear()
        commands.request(str(tmp_path / "run"), "otter-1", number, name)
        if (tmp_path / "run" / "relay" / "again").exists():
            return ""
        eventually(lambda: reported)
        [(run, text)] = reported
        assert run == "otter-1"
        return text

    return request


def register(folder: Path, text: str, mode: int = 0o600) -> None:
    path = folder / "runvitals"
    path.mkdir(exist_ok=True)
    (path / "commands.toml").write_text(text)
    (path / "commands.toml").chmod(mode)


def test_a_registered_command_runs_once_and_says_what_came_of_it(
    tmp_path: Path, ask: Callable[[int, str], str]
) -> None:
    counted = tmp_path / "counted"
    script = f"echo x >> {counted}; echo about $RUNVITALS_RUN $SECRET_TOKEN; exit 3"
    register(tmp_path, f'[commands]\ndrain = ["/bin/sh", "-c", "{script}"]\n')
    assert ask(7, "drain") == "command 7 (drain) ended with status 3: about otter-1"
    (tmp_path / "run" / "relay" / "again").touch()
    assert ask(7, "drain") == ""  # by another relay, too: it is noted in the folder of the run
    (tmp_path / "run" / "relay" / "again").unlink()
    ask(8, "drain")
    assert counted.read_text() == "x\nx\n"


@pytest.mark.parametrize(
    ("file", "name", "reason"),
    [
        ("", "drain", "no command of this name"),
        ('[commands]\ndrain = "rm -rf /"\n', "drain", "as a list of texts"),
        ('[commands]\ndrain = ["drain-node"]\n', "drain", "the whole path"),
        ('[commands]\ndrain = ["/nonexistent/drain"]\n', "drain", "No such file"),
        ('[commands]\ndrain = ["/bin/true"]\n', "drain; reboot", "invalid name"),
        ('[commands]\ndrain = ["/bin/true"]\n', "../drain", "invalid name"),
    ],
)
def test_what_is_not_registered_is_not_run(
    tmp_path: Path, ask: Callable[[int, str], str], file: str, name: str, reason: str
) -> None:
    register(tmp_path, file)
    text = ask(1, name)
    assert "was not run" in text
    assert reason in text


def test_a_file_that_others_can_write_is_not_used(tmp_path: Path, ask: Callable[[int, str], str]) -> None:
    assert "has registered no commands" in ask(1, "drain")
    register(tmp_path, '[commands]\ndrain = ["/bin/true"]\n', 0o666)
    assert "can be written by other users" in ask(2, "drain")


def test_a_command_that_goes_on_is_ended_with_its_children_and_its_output_is_bounded(tmp_path: Path) -> None:
    reported: list[str] = []
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    script = f"sleep 600 & echo $! > {tmp_path}/child; yes"
    register(tmp_path, f'[commands]\nflood = ["/bin/sh", "-c", "{script}"]\n')
    (tmp_path / "run").mkdir()
    commands = HostCommands(environ, lambda run, text: reported.append(text), timeout_s=1.5)
    commands.request(str(tmp_path / "run"), "otter-1", 1, "flood")
    eventually(lambda: reported)
    assert reported == ["command 1 (flood) was ended after 1.5 s"]
    child = int((tmp_path / "child").read_text())
    eventually(lambda: has_ended(child))


def test_a_command_may_leave_a_service_behind(tmp_path: Path, ask: Callable[[int, str], str]) -> None:
    script = f"echo begun; sleep 600 & echo $! > {tmp_path}/service"
    register(tmp_path, f'[commands]\nserve = ["/bin/sh", "-c", "{script}"]\n')
    try:
        assert ask(1, "serve") == "command 1 (serve) ended with status 0: begun"
    finally:
        os.kill(int((tmp_path / "service").read_text()), signal.SIGKILL)
