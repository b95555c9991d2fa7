from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from runvitals.monitor.processes import Exit, Process, exit_of, state_of, verdict


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def gone(process: Process) -> None:
    until = time.monotonic() + 10
    while not process.check():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_kill_is_noticed_by_the_pidfd_and_its_signal_is_known(child: subprocess.Popen[bytes]) -> None:
    process = Process(child.pid, {"role": "train"})
    child.kill()
    assert select.select([process.pidfd], [], [], 10)[0]
    until = time.monotonic() + 1
    while not process.learn_exit().known:
        assert time.monotonic() < until
    assert (process.exit.exit_code, process.exit.signal) == (None, 9)


def test_the_exit_code_is_known_even_after_the_parent_has_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); raise SystemExit(3)"], stdin=subprocess.PIPE)
    process = Process(child.pid, {})
    child.communicate(b"\n")
    # A kernel before 6.15 forgets a reaped process; there, not knowing is the right answer.
    expected = 3 if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15) else None
    assert process.learn_exit().exit_code == expected


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_where_pidfd_is_forbidden_every_tick_looks(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def forbidden(pid: int, flags: int = 0) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    process = Process(child.pid, {})
    assert process.pidfd == -1
    assert not process.gone
    assert not process.check()
    child.send_signal(signal.SIGTERM)
    gone(process)
    assert process.learn_exit().signal == 15
    child.wait()
    assert process.check()


def test_a_process_that_is_already_gone() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert Process(child.pid, {}).gone


@pytest.mark.parametrize(
    ("status", "exit_code", "by_signal"), [(0x0, 0, None), (0x300, 3, None), (0x9, None, 9), (0x8B, None, 11)]
)
def test_wait_statuses(status: int, exit_code: int | None, by_signal: int | None) -> None:
    ended = exit_of(status)
    assert (ended.exit_code, ended.signal) == (exit_code, by_signal)


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (Exit(0, None), "finished"),
        (Exit(1, None), "failed"),
        (Exit(None, 9), "crashed"),
        (Exit(None, 2), "stopped"),
        (Exit(None, 15), "stopped"),
        (Exit(130, None), "stopped"),
        (Exit(None, None), "finished"),
    ],
)
def test_states(ended: Exit, state: str) -> None:
    assert state_of(ended) == state


def test_the_worst_of_all_ranks_is_the_verdict() -> None:
    state, decisive = verdict([Exit(0, None), Exit(3, None), Exit(None, 9), Exit(None, 15)])
    assert (state, decisive.signal) == ("crashed", 9)
