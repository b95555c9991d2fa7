"""The connection of a process to its monitor."""

from __future__ import annotations

import os
import socket

import pytest

from runvitals.monitor.launch import MonitorSocket, _memory_file


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


@pytest.mark.parametrize("anonymous", [True, False])
def test_a_spec_of_any_length_can_be_read(monkeypatch: pytest.MonkeyPatch, anonymous: bool) -> None:
    if not anonymous:
        monkeypatch.delattr(os, "memfd_create")  # as on systems without such files
    text = b"x" * 3_000_000
    with open(_memory_file(text), "rb") as file:
        assert file.read() == text
