from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from runvitals.monitor.processes import (
    CLOSING,
    CLOSING_GRACE_S,
    GONE,
    LEFT,
    NEVER,
    RUNNING,
    WatchedProcess,
    exit_of,
    inherited_pidfd,
)
from tests.patience import PATIENCE_S


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def gone(process: WatchedProcess) -> None:
    until = time.monotonic() + PATIENCE_S
    while not process.has_ended():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_kill_is_noticed_by_the_pidfd_and_its_signal_is_known(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {"role": "train"})
    child.kill()
    poll = select.poll()  # `select()` takes no descriptor over 1,023
    poll.register(process.pidfd, select.POLLIN)
    assert poll.poll(10_000)
    until = time.monotonic() + 1
    while not process.read_exit().known:
        assert time.monotonic() < until
    assert (process.exit.exit_code, process.exit.signal) == (None, 9)


def test_the_exit_code_is_known_even_after_the_parent_has_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); raise SystemExit(3)"], stdin=subprocess.PIPE)
    process = WatchedProcess(child.pid, {})
    child.communicate(b"\n")
    # A kernel before 6.15 forgets a reaped process; there, not knowing is the right answer.
    expected = 3 if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15) else None
    assert process.read_exit().exit_code == expected


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_where_pidfd_is_forbidden_a_look_tells(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def forbidden(pid: int, flags: int = 0) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    process = WatchedProcess(child.pid, {})
    assert process.pidfd == -1
    assert process.state == RUNNING
    assert not process.has_ended()
    child.send_signal(signal.SIGTERM)
    gone(process)
    assert process.read_exit().signal == 15
    child.wait()
    assert process.has_ended()


def test_a_process_that_is_already_gone() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert WatchedProcess(child.pid, {}).state == GONE


@pytest.mark.parametrize(
    ("status", "exit_code", "by_signal"), [(0x0, 0, None), (0x300, 3, None), (0x9, None, 9), (0x8B, None, 11)]
)
def test_wait_statuses(status: int, exit_code: int | None, by_signal: int | None) -> None:
    ended = exit_of(status)
    assert (ended.exit_code, ended.signal) == (exit_code, by_signal)


def test_running_left(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    assert (process.state, process.over, process.check_at_s) == (RUNNING, False, NEVER)
    process.leave(None)
    assert (process.state, process.over, process.exit.exit_code, process.pidfd) == (LEFT, True, 0, -1)


def test_running_closing_gone(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    process.begin_closing(1, now_s=100.0)
    assert (process.state, process.over) == (CLOSING, False)
    assert not process.check(100.0 + CLOSING_GRACE_S - 1)
    process.mark_gone()  # a kernel that tells no exit code: what it said counts
    assert (process.state, process.over, process.exit.exit_code) == (GONE, True, 1)


def test_running_closing_left(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    process.begin_closing(1, now_s=100.0)
    assert process.check_at_s == 100.0 + CLOSING_GRACE_S
    assert not process.check(process.check_at_s)
    assert (process.state, process.exit.exit_code, process.check_at_s) == (LEFT, 1, NEVER)


def test_only_what_really_ended_is_known_of_one_that_said_nothing(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    process.mark_gone()
    assert (process.state, process.exit.known) == (GONE, False)


def test_one_that_was_killed_is_dying_and_one_that_sleeps_is_not(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    assert not process.is_being_killed()
    child.send_signal(signal.SIGSTOP)
    assert not process.is_being_killed()
    child.kill()
    assert process.is_being_killed(), "it has not run since, but will die as soon as it does"
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.is_being_killed(), "a zombie"
    child.wait()
    assert process.is_being_killed(), "it has gone"
    process.release()


def test_a_pidfd_that_was_handed_over_is_one_of_that_process(child: subprocess.Popen[bytes]) -> None:
    fd = os.pidfd_open(child.pid)
    assert inherited_pidfd(fd, child.pid) == fd
    child.kill()
    child.wait()
    assert inherited_pidfd(fd, child.pid) == fd, "right even if the process has ended since"
    os.close(fd)
    assert inherited_pidfd(fd, child.pid) == -1, "nothing was handed over"


@pytest.mark.parametrize("what", ["file", "pipe", "socket", "another process"])
def test_what_is_no_pidfd_of_that_process_is_closed_and_not_taken_for_one(
    child: subprocess.Popen[bytes], what: str
) -> None:
    other = -1
    if what == "file":
        fd = os.open("/proc/self/stat", os.O_RDONLY)
    elif what == "pipe":
        fd, other = os.pipe()
    elif what == "socket":
        fd = socket.socket().detach()
    else:
        fd = os.pidfd_open(os.getpid())
    assert inherited_pidfd(fd, child.pid) == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    if other >= 0:
        os.close(other)
