"""The line from a process to its monitor."""

from __future__ import annotations

import os
import socket

import pytest

from runvitals.monitor.launch import MonitorSocket, _memory_file


def test_an_answer_is_one_line_whatever_follows_it() -> None:
    ours, theirs = socket.socketpair()
    line = MonitorSocket(ours)
    theirs.sendall(b'{"op":"done","state":"running"}\n{"op":"done","state":"finished"}\n')
    assert line.ask({"op": "finish"}, 5) == {"op": "done", "state": "running"}
    assert theirs.recv(100) == b'{"op":"finish"}\n'
    line.close()
    theirs.close()


def test_a_monitor_that_leaves_without_an_answer() -> None:
    ours, theirs = socket.socketpair()
    line = MonitorSocket(ours)
    theirs.close()
    assert line.ask({"op": "finish"}, 5) is None
    line.close()


@pytest.mark.parametrize("anonymous", [True, False])
def test_an_order_of_any_length_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, anonymous: bool
) -> None:
    if not anonymous:
        monkeypatch.delattr(os, "memfd_create")  # as on systems that have no such files
    text = b"x" * 3_000_000
    with open(_memory_file(text), "rb") as file:
        assert file.read() == text
