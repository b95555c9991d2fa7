"""Runs of the operations that are interrupted, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.forked_command import ForkedProcess
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[2]


def killed(folder: str, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Kill an operation at each step, in a fork of a process that has imported the server: it saves 1 s."""
    process = ForkedProcess(_interrupt, (operation, "kill", folder, *more), os.environ)
    out, err = process.communicate(PATIENCE_S * 10)
    return subprocess.CompletedProcess([], process.wait(), out, err)


def _interrupt(*arguments: str) -> None:
    from tests.store.interrupted_operations import main

    main(*arguments)


class SmallDisks:
    """A process that may mount disks and imports the server once, which takes 1 s, for all operations."""

    def __init__(self) -> None:
        namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        self._process = subprocess.Popen(
            [*namespace, sys.executable, "-m", "tests.store.interrupted_operations"],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> SmallDisks:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._process.communicate(timeout=PATIENCE_S)

    def full(self, folder: Path, operation: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run an operation on a small disk, which becomes full at each of its steps."""
        disk = folder / "disk"
        disk.mkdir()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([operation, str(disk), *more]), file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        out, err = (disk.with_suffix(suffix).read_text() for suffix in (".out", ".err"))
        return subprocess.CompletedProcess([], status, out, err)


def assert_survived(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["failures"] == [], f"{outcome['failures']}\n{done.stderr[-40000:]}"
    assert len(outcome["steps"]) > 4, outcome["steps"]
