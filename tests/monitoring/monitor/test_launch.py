"""The connection of a process to its monitor."""

from __future__ import annotations

import contextlib
import os
import py_compile
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runvitals.monitoring.monitor import boot, launch
from runvitals.monitoring.monitor.launch import MonitorSocket, _memory_file
from tests.patience import PATIENCE_S


def test_an_answer_is_one_line_even_if_more_follow() -> None:
    ours, monitor = socket.socketpair()
    connection = MonitorSocket(ours)
    monitor.sendall(b'{"op":"done","state":"running"}\n{"op":"done","state":"finished"}\n')
    assert connection.ask({"op": "finish"}, 5) == {"op": "done", "state": "running"}
    assert monitor.recv(100) == b'{"op":"finish"}\n'
    connection.close()
    monitor.close()


def test_a_monitor_that_ends_without_an_answer() -> None:
    ours, monitor = socket.socketpair()
    connection = MonitorSocket(ours)
    monitor.close()
    assert connection.ask({"op": "finish"}, 5) is None
    connection.close()


@pytest.mark.parametrize(
    "response", [b"\xff\xfe\n", b"[" * 5000 + b"\n", b"5\n", b"HTTP/1.1 400 Bad\r\n", b"x" * 2_000_000]
)
def test_another_program_at_the_address_of_the_monitor(response: bytes) -> None:
    ours, stranger = socket.socketpair()
    connection = MonitorSocket(ours)

    def send() -> None:
        with contextlib.suppress(BrokenPipeError):
            stranger.sendall(response)

    sending = threading.Thread(target=send)
    sending.start()
    assert connection.ask({"op": "finish"}, PATIENCE_S) is None
    connection.close()
    sending.join()
    stranger.close()


@pytest.mark.parametrize("anonymous", [True, False])
def test_a_spec_of_any_length_can_be_read(monkeypatch: pytest.MonkeyPatch, anonymous: bool) -> None:
    if not anonymous:
        monkeypatch.delattr(os, "memfd_create")  # as on systems without such files
    text = b"x" * 3_000_000
    with open(_memory_file(text), "rb") as file:
        assert file.read() == text


@pytest.mark.parametrize("is_compiled", [True, False])
def test_the_command_runs_the_monitor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_compiled: bool
) -> None:
    compiled = tmp_path / "boot.pyc"
    if is_compiled:
        py_compile.compile(boot.__file__, str(compiled))
    spec = boot.__spec__
    assert spec is not None
    monkeypatch.setattr(spec, "cached", str(compiled))
    command = launch._command("abc")
    assert (str(compiled) in command) == is_compiled
    assert command[-2:] == ["runvitals-monitor", "abc"]
    # Without its descriptors it fails when it reads the first.
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, close_fds=True)
    assert "_read_spec" in done.stderr
    assert command[0] == sys.executable
