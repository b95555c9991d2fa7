"""Runs of the operations that are interrupted, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.store.samples.test_crashes import in_namespace

ROOT = Path(__file__).parents[2]
MODULE = "tests.store.interrupted_operations"


def killed(folder: str, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", MODULE, operation, "kill", folder, *more]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def disk_full(folder: str, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
    script = 'mount -t tmpfs -o size=32m none "$4" && exec "$0" -m "$@"'
    return in_namespace(script, sys.executable, MODULE, operation, "full", folder, *more)


def assert_survived(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["failures"] == [], done.stderr[-4000:]
    assert len(outcome["steps"]) > 4, outcome["steps"]
