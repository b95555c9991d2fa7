"""The line from a process to its monitor."""

from __future__ import annotations

import socket

from runvitals.monitor.launch import Line


def test_an_answer_is_one_line_whatever_follows_it() -> None:
    ours, theirs = socket.socketpair()
    line = Line(ours)
    theirs.sendall(b'{"op":"done","state":"running"}\n{"op":"done","state":"finished"}\n')
    assert line.ask({"op": "finish"}, 5) == {"op": "done", "state": "running"}
    assert theirs.recv(100) == b'{"op":"finish"}\n'
    line.close()
    theirs.close()


def test_a_monitor_that_leaves_without_an_answer() -> None:
    ours, theirs = socket.socketpair()
    line = Line(ours)
    theirs.close()
    assert line.ask({"op": "finish"}, 5) is None
    line.close()
