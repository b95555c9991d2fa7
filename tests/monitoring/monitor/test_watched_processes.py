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

from runvitals.monitoring.monitor.watched_processes import (
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


def wait_until_ended(process: WatchedProcess) -> None:
    until = time.monotonic() + PATIENCE_S
    while not process.has_ended():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_the_pidfd_reports_a_kill_and_the_signal_is_read(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {"role": "train"})
    child.kill()
    poll = select.poll()  # `select()` takes no descriptor over 1,023
    poll.register(process.pidfd, select.POLLIN)
    assert poll.poll(10_000)
    until = time.monotonic() + 1
    while not process.read_exit().known:
        assert time.monotonic() < until
    assert (process.exit.exit_code, process.exit.signal) == (None, 9)


def test_the_exit_code_of_a_reaped_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); raise SystemExit(3)"], stdin=subprocess.PIPE)
    process = WatchedProcess(child.pid, {})
    child.communicate(b"\n")
    # Kernels before 6.15 do not report the exit of a reaped process.
    expected = 3 if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15) else None
    assert process.read_exit().exit_code == expected


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_without_a_pidfd_the_process_is_checked(
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
    wait_until_ended(process)
    assert process.read_exit().signal == 15
    child.wait()
    assert process.has_ended()


def test_a_process_that_has_already_ended_is_gone() -> None:
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
    process.mark_gone()  # exit status unknown: the announced code counts
    assert (process.state, process.over, process.exit.exit_code) == (GONE, True, 1)


def test_running_closing_left(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    process.begin_closing(1, now_s=100.0)
    assert process.check_at_s == 100.0 + CLOSING_GRACE_S
    assert not process.check(process.check_at_s)
    assert (process.state, process.exit.exit_code, process.check_at_s) == (LEFT, 1, NEVER)


def test_the_exit_of_a_process_that_announced_nothing_is_unknown(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    process.mark_gone()
    assert (process.state, process.exit.known) == (GONE, False)


def test_a_killed_process_is_being_killed_until_it_is_reaped(child: subprocess.Popen[bytes]) -> None:
    process = WatchedProcess(child.pid, {})
    assert not process.is_being_killed()
    child.send_signal(signal.SIGSTOP)
    assert not process.is_being_killed()
    child.kill()
    assert process.is_being_killed(), "SIGKILL is pending while it is stopped"
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.is_being_killed(), "a zombie"
    child.wait()
    assert process.is_being_killed(), "it was reaped"
    process.release()


def test_an_inherited_pidfd_of_the_process_is_accepted(child: subprocess.Popen[bytes]) -> None:
    fd = os.pidfd_open(child.pid)
    assert inherited_pidfd(fd, child.pid) == fd
    child.kill()
    child.wait()
    assert inherited_pidfd(fd, child.pid) == fd, "valid even if the process has ended since"
    os.close(fd)
    assert inherited_pidfd(fd, child.pid) == -1, "nothing was inherited"


@pytest.mark.parametrize("what", ["file", "pipe", "socket", "another process"])
def test_any_other_inherited_descriptor_is_closed(child: subprocess.Popen[bytes], what: str) -> None:
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
