"""Runs of the operations that are interrupted, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.forked_command import ForkedProcess
from tests.patience import PATIENCE_S
from tests.store.samples.test_crashes import in_namespace

MODULE = "tests.store.interrupted_operations"


def killed(folder: str, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Kill an operation at each step, in a fork of a process that has imported the server: it saves 1 s."""
    process = ForkedProcess(_interrupt, (operation, "kill", folder, *more), os.environ)
    out, err = process.communicate(PATIENCE_S * 10)
    return subprocess.CompletedProcess([], process.wait(), out, err)


def _interrupt(*arguments: str) -> None:
    from tests.store.interrupted_operations import main

    main(*arguments)


def disk_full(folder: str, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
    script = 'mount -t tmpfs -o size=16m none "$4" && exec "$0" -m "$@"'
    return in_namespace(script, sys.executable, MODULE, operation, "full", folder, *more)


def assert_survived(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["failures"] == [], f"{outcome['failures']}\n{done.stderr[-40000:]}"
    assert len(outcome["steps"]) > 4, outcome["steps"]
