"""Functions that run in a forked child of the monitor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.monitor.forked_task import ForkedTask
from tests.patience import PATIENCE_S


def fails() -> dict[str, Any]:
    raise OSError(2, "No such file or directory")


def dies() -> dict[str, Any]:
    os._exit(1)


def dies_while_it_writes_its_result() -> dict[str, Any]:
    os.write(1, b'{"hostname": "no')
    os._exit(1)


def test_the_result_is_that_of_the_function() -> None:
    assert ForkedTask(lambda: {"hostname": "node1"}).result() == {"hostname": "node1"}


def test_a_result_larger_than_a_pipe_holds() -> None:
    assert ForkedTask(lambda: {"text": "x" * 1_000_000}).result() == {"text": "x" * 1_000_000}


def test_an_exception_is_returned_as_an_error() -> None:
    assert ForkedTask(fails).result() == {"error": "FileNotFoundError: [Errno 2] No such file or directory"}


@pytest.mark.parametrize("function", [dies, dies_while_it_writes_its_result])
def test_a_killed_child_is_an_error(function: Any) -> None:
    assert ForkedTask(function).result() == {"error": "the child process ended without a result"}


def test_a_child_whose_monitor_was_killed_does_not_go_on_as_a_monitor(tmp_path: Path) -> None:
    gate, went_on = tmp_path / "gate", tmp_path / "went_on"
    os.mkfifo(gate)
    script = f"""
import os
from runvitals.monitoring.monitor.forked_task import ForkedTask

task = None
try:
    task = ForkedTask(lambda: {{"text": open({str(gate)!r}).read()}})
finally:
    with open({str(went_on)!r}, "a") as file:
        print("parent" if task else "child", file=file)
os.close(task.fd)  # nobody reads the result
open({str(gate)!r}, "w").close()
os.waitpid(task.pid, 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)
    assert went_on.read_text().split() == ["parent"]
