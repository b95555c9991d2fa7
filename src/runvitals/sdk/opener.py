"""The process that opened a run, as seen from a process that was forked from it.

A daemon forks, its first process ends with exit code 0, and the training goes on in the forked one. That one
then continues the run. A worker whose training has crashed or failed does not.
"""

from __future__ import annotations

import os
import time
from typing import Any

from runvitals.base.backoff import Backoff
from runvitals.journal import frames, paths
from runvitals.journal.records import json_records

_CHECK_EVERY_S = 0.1
_MAX_WAIT_S = 60.0
_PEEK_BYTES = 256 * 1024  # the end of a monitor's file, which has the exit of a process that has just ended


class Opener:
    """The process that opened a run.

    Args:
        pid: its pid.
        folder: the run's folder.
    """

    __slots__ = ("_backoff", "_check_at_s", "_folder", "_pid")

    def __init__(self, pid: int, folder: str) -> None:
        self._pid = pid
        self._folder = folder
        self._check_at_s = 0.0
        self._backoff = Backoff(_CHECK_EVERY_S, _MAX_WAIT_S)

    def has_handed_over(self) -> bool:
        """Return whether it has ended without finishing the run, crashing or failing.

        Looks at most every tenth of a second, and less often if the journal does not say how it ended.
        """
        now_s = time.monotonic()
        if now_s < self._check_at_s:
            return False
        if not _has_ended(self._pid):
            self._check_at_s = now_s + _CHECK_EVERY_S
            return False
        exit = self._recorded_exit()
        if exit is not None and not exit.get("exit_code") and not exit.get("signal"):
            return True
        self._check_at_s = now_s + self._backoff.failed(now_s)
        return False

    def _recorded_exit(self) -> dict[str, Any] | None:
        """Return the last record of a monitor about its end; None if there is none."""
        exits = [
            value
            for writer, segments in paths.segments(self._folder).items()
            if writer.startswith("monitor.")
            for value in _lifecycle(paths.segment_path(self._folder, writer, segments[-1]))
            if value.get("what") == "exit" and value.get("pid") == self._pid
        ]
        return max(exits, key=lambda value: int(value["t"]), default=None)


def _lifecycle(path: str) -> list[dict[str, Any]]:
    """Return the lifecycle records at the end of a journal file."""
    try:
        data = paths.read_range(path, max(0, os.stat(path).st_size - _PEEK_BYTES), _PEEK_BYTES)
    except OSError:
        return []  # sealed and renamed since the listing, or deleted
    return json_records(data, (frames.LIFECYCLE,))


def _has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        pass  # it has ended, or is hidden, or there is no /proc
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
