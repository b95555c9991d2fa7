"""`runvitals server --workers N`: several server processes that accept connections on one socket."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

from runvitals.base.backoff import Backoff
from runvitals.base.terminal_text import inert

_HEALTHY_S = 30.0
"""A process that ran this long is started again at once when it dies."""
_MAX_PAUSE_S = 30.0

log = logging.getLogger("runvitals.server")


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class WorkerProcesses:
    """Forks processes, restarts those that die, and ends all at SIGTERM or SIGINT.

    They also end when this process was killed: its successor needs their port and folders.

    Args:
        work: runs in each process, with its number from 0; returns its exit code.
    """

    def __init__(self, count: int, work: Callable[[int], int]) -> None:
        self._work = work
        self._pids: dict[int, int] = {}
        self._started_s: dict[int, float] = {}
        self._backoffs = [Backoff(1.0, _MAX_PAUSE_S) for _ in range(count)]
        self._due_s = dict.fromkeys(range(count), 0.0)
        self._ending = False
        # Only this process has the end for writing, so that the others notice when it dies.
        self._lifeline, self._own_end = os.pipe()

    def run(self) -> int:
        """Run until a signal; return the highest exit code of the processes that end then."""
        before = {number: signal.signal(number, self._end) for number in _SIGNALS}
        worst = 0
        try:
            while not self._ending or self._pids:
                for number in [number for number, due_s in self._due_s.items() if due_s <= time.monotonic()]:
                    if not self._ending:
                        self._start(number)
                worst = max(worst, self._collect())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return worst

    def _start(self, number: int) -> None:
        del self._due_s[number]
        self._started_s[number] = time.monotonic()
        # A signal in between would end neither the new process nor, without it, this one.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid:
            self._pids[pid] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        code = 1
        try:
            for handled in _SIGNALS:
                signal.signal(handled, self._interrupt)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(self._own_end)
            threading.Thread(target=self._end_with_parent, name="runvitals-parent", daemon=True).start()
            code = self._work(number)
        except KeyboardInterrupt:
            code = 0
        except (OSError, ValueError) as error:
            print(f"runvitals: {inert(error)}", file=sys.stderr)
        except BaseException:  # noqa: BLE001 (this process ends here, with its trace)
            if not self._ending:
                traceback.print_exc()
            code = 0 if self._ending else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """End a process that is still starting; a library may raise an error of its own instead."""
        self._ending = True
        raise KeyboardInterrupt

    def _end_with_parent(self) -> None:
        os.read(self._lifeline, 1)  # returns when the parent has ended
        os.kill(os.getpid(), signal.SIGTERM)

    def _collect(self) -> int:
        """Wait a moment for a process to end, and return its exit code; 0 if none ended."""
        pid, status = os.waitpid(-1, os.WNOHANG) if self._pids else (0, 0)
        number = self._pids.pop(pid, None)
        if number is None:
            time.sleep(0.1)
            return 0
        code = os.waitstatus_to_exitcode(status)
        if self._ending:
            return code if code > 0 else 0
        if time.monotonic() - self._started_s[number] > _HEALTHY_S:
            self._backoffs[number].note_success()
        wait_s = self._backoffs[number].note_failure(time.monotonic())
        self._due_s[number] = time.monotonic() + wait_s
        log.error("server process %d ended with %d; it starts again in %.0f s", number, code, wait_s)
        return 0

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending = True
        for pid in self._pids:
            os.kill(pid, signal.SIGTERM)
