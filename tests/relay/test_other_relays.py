"""Trainings of several virtual environments in one data folder: each destination has its packages."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.monitor.relay_connection import ask
from runvitals.relay.engine.cursor import find_cursors
from tests.leftovers import left_running
from tests.patience import PATIENCE_S, eventually

SOURCE = Path(__file__).parents[2] / "src"
KIND = '''
import json, sys
from pathlib import Path
import board_client
from runvitals.relay.destination import Destination

class Board(Destination):
    """Writes a line for each batch, and asks for a stop if its address says so."""

    name = "board"
    interval_s = 0.05

    def __init__(self, address, context):
        self.path, self.context = Path(address), context

    def deliver(self, batch):
        entry = {"run": batch.run.id, "rows": len(batch.logs), "python": sys.executable}
        entry["key"] = self.context.environ.get("BOARD_KEY")
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\\n")
        if self.path.name == "stop":
            self.context.request_stop("by the board")
'''
FIRST = """
import runvitals, sys
run = runvitals.init(id="first", settings={"sampling_interval": 0.1, "destinations": ["files:out"]})
print("up", flush=True)
sys.stdin.readline()
run.finish()
"""
SECOND = """
import runvitals
with runvitals.init(id="second") as run:
    run.log({"loss": 1.0})
"""
UNTIL_STOPPED = """
import runvitals, time
run = runvitals.init(id="second", settings={"sampling_interval": 0.1})
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("stopped")
"""


class Environments:
    """Two virtual environments: `plain`, and `full`, which has the destination `board`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.plain, self.full = (self._made(name) for name in ("plain", "full"))
        self.add_kind(self.full)
        (self._packages(self.full) / "board_client.py").write_text("")
        kept = {
            name: text for name, text in os.environ.items() if not name.startswith(("RUNVITALS", "PYTHON"))
        }
        self._environ = {
            **kept,
            "RUNVITALS_DIR": str(self.data),
            "RUNVITALS_COLLECTORS": "cpu",
            "XDG_CONFIG_HOME": str(folder),
        }

    def _made(self, name: str) -> Path:
        root = self.folder / name
        venv.create(root, symlinks=True)
        python = root / "bin" / "python"
        (self._packages(python) / "source.pth").write_text(str(SOURCE))
        return python

    def _packages(self, python: Path) -> Path:
        (folder,) = python.parents[1].glob("lib/python3*/site-packages")
        return folder

    def add_kind(self, python: Path) -> None:
        """Install the package that adds the destination, without what it requires."""
        (self._packages(python) / "board.py").write_text(KIND)
        about = self._packages(python) / "board-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: board\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[runvitals.destinations]\nboard = board:Board\n")

    def start(self, python: Path, script: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(python), "-c", script],
            cwd=self.folder,
            env={**self._environ, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def train(self, python: Path, script: str, **more: str) -> str:
        """Run a training; its output."""
        process = self.start(python, script, **more)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        return out + err

    def entries(self, board: str = "board") -> list[dict[str, Any]]:
        path = self.folder / board
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def environments(tmp_path: Path) -> Iterator[Environments]:
    environments = Environments(tmp_path)
    yield environments
    for python in ("", str(environments.full), str(environments.plain)):
        response = ask(str(environments.data), {"op": "hello"}, PATIENCE_S, python)
        if response is not None:
            os.kill(int(response["pid"]), 15)
    assert not left_running(environments.data)


@pytest.fixture
def first(environments: Environments) -> Iterator[subprocess.Popen[str]]:
    """A training of the plain environment, which has started the relay of the data folder."""
    process = environments.start(environments.plain, FIRST)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    eventually(lambda: ask(str(environments.data), {"op": "hello"}, 1.0) is not None)
    yield process
    process.communicate("go on\n", timeout=PATIENCE_S)


@pytest.mark.parametrize("has_kind", [False, True])
def test_a_relay_without_the_package_hands_over(
    has_kind: bool, environments: Environments, first: subprocess.Popen[str]
) -> None:
    """Whether the other environment lacks the destination, or only what that requires."""
    if has_kind:
        environments.add_kind(environments.plain)
    board = f"board:{environments.folder}/board"
    variables = {"BOARD_KEY": "of-this-training", "RUNVITALS_DELIVERY_TIMEOUT": str(PATIENCE_S)}
    out = environments.train(
        environments.full, SECOND, RUNVITALS_DESTINATIONS=f"{board},files:out", **variables
    )
    assert f"delivered to {board}: " in out
    assert "delivered to files:out: " in out
    entries = environments.entries()
    assert sum(entry["rows"] for entry in entries) == 1
    assert {(entry["run"], entry["python"], entry["key"]) for entry in entries} == {
        ("second", str(environments.full), "of-this-training")
    }


def test_the_other_relay_forwards_what_the_destination_asks_for(
    environments: Environments, first: subprocess.Popen[str]
) -> None:
    board = f"board:{environments.folder}/stop"
    assert "stopped" in environments.train(environments.full, UNTIL_STOPPED, RUNVITALS_DESTINATIONS=board)


def test_an_error_names_the_interpreter_that_lacks_the_package(
    environments: Environments, first: subprocess.Popen[str]
) -> None:
    environments.add_kind(environments.plain)
    board = f"board:{environments.folder}/board"
    out = environments.train(environments.plain, SECOND, RUNVITALS_DESTINATIONS=board)
    assert f"board requires board_client, which {environments.plain} lacks: " in out
    assert f"{environments.plain} -m pip install board_client" in out


def test_a_run_that_was_left_behind_is_delivered_by_its_interpreter(environments: Environments) -> None:
    """The relay of its training ended before it could deliver; the next one has other packages."""
    board = environments.folder / "later" / "board"  # a folder that is not there
    out = environments.train(environments.full, SECOND, RUNVITALS_DESTINATIONS=f"board:{board}")
    assert "is not fully delivered" in out
    response = ask(str(environments.data), {"op": "hello"}, PATIENCE_S)
    assert response is not None
    os.kill(int(response["pid"]), 15)
    assert not left_running(environments.data)
    board.parent.mkdir()
    environments.train(
        environments.plain, SECOND.replace("second", "third"), RUNVITALS_DESTINATIONS="files:out"
    )
    eventually(lambda: sum(entry["rows"] for entry in environments.entries("later/board")) == 1)
    (cursor,) = find_cursors(str(environments.data / "runs" / "second"))
    assert cursor.python == str(environments.full)
