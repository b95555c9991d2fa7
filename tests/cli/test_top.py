"""The command `runvitals top` on a real terminal, with a fake vendor tool."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.collectors.plumbing.test_tool import program
from tests.patience import PATIENCE_S
from tests.sdk.runs import environment

CARD = {
    "Temperature (Sensor junction) (C)": "71.0",
    "Current Socket Graphics Package Power (W)": "402.0",
    "Max Graphics Package Power (W)": "750.0",
    "GPU use (%)": "42",
    "GPU Memory Allocated (VRAM%)": "33",
    "Card Series": "AMD Instinct \x1b[31mMI300X",
}


class Terminal:
    """A program in an 80 x 24 terminal."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.process = subprocess.Popen(
            command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        self.output = b""
        os.set_blocking(self.ours, False)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self) -> bytes:
        try:
            self.output += os.read(self.ours, 1 << 16)
        except BlockingIOError:
            time.sleep(0.02)
        return self.output

    def wait_for(self, text: bytes) -> bytes:
        until_s = time.monotonic() + PATIENCE_S
        while text not in self.read():
            assert time.monotonic() < until_s, f"{text!r} did not come: {self.output[-2000:]!r}"
        return self.output

    def ended(self) -> int:
        until_s = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until_s, "it does not end"
            self.read()
        self.read()
        return self.process.returncode

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "out.json").write_text(json.dumps({"card0": CARD, "card1": CARD}))
    program(tools, "rocm-smi", f"exec /bin/cat {tools}/out.json")
    variables: dict[str, Any] = environment(tmp_path, TERM="xterm-256color", LC_ALL="C.UTF-8", **more)
    return {**variables, "PATH": f"{tools}:{variables.get('PATH', os.environ['PATH'])}"}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "runvitals", "top", "--plain", "--interval", "0.2"]
    started = Terminal(command, environ(tmp_path, NO_COLOR="1"))
    yield started
    started.close()


def test_follows_the_machine_and_the_size_of_the_terminal_until_interrupted(terminal: Terminal) -> None:
    drawn = terminal.wait_for("GPU 1   ██▉░░░░  42 %".encode())
    assert rb"AMD Instinct \x1b[31mMI300X" in drawn
    assert b"\x1b[31m" not in drawn
    assert b"Ctrl-C quits" in drawn
    assert rb"\x1b[K" not in drawn
    terminal.resize(200, 50)
    terminal.wait_for("GPU 1   ███████▌░░░░░░░░░░  42 %".encode())
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    assert terminal.is_as_before()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it(terminal: Terminal, number: signal.Signals) -> None:
    terminal.wait_for(b"runvitals top")
    terminal.process.send_signal(number)
    assert terminal.ended() in (-number, 128 + number)
    assert terminal.is_as_before()


def test_prints_one_snapshot_without_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runvitals", "top"],
        env=environ(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0].startswith("runvitals top  ")
    assert any(line.startswith("GPU 0") and "402/750 W" in line for line in lines)
    assert "\x1b" not in done.stdout
    assert any("COMMAND" in line for line in lines)


def test_invalid_interval(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runvitals", "top", "--interval", "0"],
        env=environ(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "0.1 to 3600" in done.stderr
