"""`runvitals leet` in a real terminal: tmux, over a simulated run of 4 × 8 GPUs that goes on."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, eventually
from tests.readers.journals.journals import Monitor
from tests.readers.wandb_files import files

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A pane of tmux, in a server of its own."""

    def __init__(self, folder: Path, command: str) -> None:
        self._socket = str(folder / "tmux")
        self._environ = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        self._environ |= {"LINES": "24", "COLUMNS": "80"}  # as programs with readline leave them
        self._environ |= {"XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self.call("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", command)

    def call(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", self._socket, *arguments]
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def keys(self, *names: str) -> None:
        self.call("send-keys", *names)

    def text(self, *options: str) -> str:
        return self.call("capture-pane", "-p", *options)

    def close(self) -> None:
        self.call("kill-server")


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Path]:
    """A data folder into which a simulation writes, 30 times as fast as the time."""
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "runvitals", "simulate", "--profile", "h100x8", "--nodes", "4"]
    command += ["--speed", "30", "--hours", "5", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as simulation:
        try:
            logged = folder.glob  # a run that has logged nothing yet is opened without charts
            eventually(lambda: any(path.stat().st_size > 1000 for path in logged("runs/*/train.*.rvj")))
            yield folder
        finally:
            simulation.send_signal(signal.SIGINT)
            simulation.wait(PATIENCE_S)


def test_a_live_run_in_a_terminal(simulated: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, f"'{sys.executable}' -m runvitals leet --dir '{simulated}'; sleep 600")

    def shows(text: str) -> Callable[[], bool]:
        return lambda: text in terminal.text()

    try:
        eventually(shows("train"))  # the title of a chart may be shortened
        eventually(lambda: any("⠁" <= char <= "⣿" for char in terminal.text()))
        assert "running" in terminal.text()
        before = terminal.text()
        eventually(lambda: terminal.text() != before)  # it goes on
        assert not re.findall(r"\x1b\[(?:3[0-8]|4[0-8]|9[0-7])", terminal.text("-e"))  # NO_COLOR
        terminal.keys("\\")
        eventually(shows("System: regular expression"))
        terminal.keys("-l", "powerWatts")
        terminal.keys("Enter")
        eventually(shows("with powerWatts"))
        terminal.keys("Enter")  # full screen, with the unit
        eventually(lambda: "GPU power" in terminal.text() and "Overview" not in terminal.text())
        eventually(shows(" W "))  # below the heatmap
        terminal.keys("y")  # lines
        eventually(shows(" W┤"))
        terminal.call("resize-window", "-x", "60", "-y", "20")
        eventually(lambda: re.search(r"^╭─ GPU power .{46}╮$", terminal.text(), re.MULTILINE))
        terminal.keys("q")
        eventually(lambda: "GPU power" not in terminal.text())
        assert "Traceback" not in terminal.text("-S", "-")
    finally:
        print(terminal.text())  # shown if the test fails
        terminal.close()


@pytest.mark.parametrize("protocol", ["abc", "run.wandb", "http://127.0.0.1:9/runs/abc"])
def test_its_first_picture_does_not_wait_for_numpy(tmp_path: Path, protocol: str) -> None:
    """NumPy takes a third of the CPU time of the start."""
    Monitor(tmp_path).close()
    files.write(tmp_path / "run.wandb", files.started())
    program = (
        "import sys; from runvitals.terminal.leet.app import LeetApp; from runvitals.cli import main\n"
        "LeetApp.run_in_terminal = lambda *_: print('loaded:', 'numpy' in sys.modules) or 0\n"
        f"main(['leet', '--dir', {str(tmp_path)!r}, {protocol!r}])"
    )
    terminal, inside = pty.openpty()
    command = [sys.executable, "-c", program]
    subprocess.run(command, stdin=inside, stdout=inside, timeout=PATIENCE_S, check=True, cwd=tmp_path)
    os.close(inside)
    assert b"loaded: False" in os.read(terminal, 4096)
    os.close(terminal)


def test_it_ends_when_the_terminal_is_gone() -> None:
    """A terminal that is not its controlling terminal sends no signal."""
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "runvitals", "top"], stdin=inside, stdout=inside, stderr=inside
    ) as program:
        try:
            os.close(inside)
            assert os.read(terminal, 1)
            os.close(terminal)
            assert program.wait(PATIENCE_S) == 129
        finally:
            program.kill()
