"""Worker processes of the multiprocessing module, which import the training's script when they are spawned.

A script that calls `init()` outside `if __name__ == "__main__":` calls it again in each of them. That call
gets the run of the training, as a forked process has it: the worker may log, and its end does not matter.
"""

from __future__ import annotations

import os
import sys

_OPEN_RUN = "RUNVITALS_OPEN_RUN"
"""The variable with pid, run id and data folder of a process that has opened a run."""


class RunOfParent:
    """The run that a process has opened.

    Args:
        pid: the pid of that process.
    """

    __slots__ = ("directory", "pid", "run_id")

    def __init__(self, pid: int, run_id: str, directory: str) -> None:
        self.pid = pid
        self.run_id = run_id
        self.directory = directory


def parent_pid() -> int | None:
    """Return the process that started this one as a worker; None if this is none."""
    module = sys.modules.get("multiprocessing.process")
    parent = None if module is None else module.parent_process()
    return None if parent is None else parent.pid


def imports_main() -> bool:
    """Return whether this is a worker that is importing the script of the process that has started it."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and bool(getattr(module.current_process(), "_inheriting", False))


def remember(run_id: str, directory: str) -> None:
    """Tell workers which run this process has opened."""
    os.environ[_OPEN_RUN] = f"{os.getpid()} {run_id} {directory}"


def of_parent() -> RunOfParent | None:
    """Return the run that the parent of this worker opened last; None if there is none."""
    pid, _, rest = os.environ.get(_OPEN_RUN, "").partition(" ")
    run_id, _, directory = rest.partition(" ")
    return RunOfParent(int(pid), run_id, directory) if pid.isdecimal() and run_id and directory else None
