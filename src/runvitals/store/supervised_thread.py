"""Threads that matter: one that fails says so and goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from runvitals.backoff import Backoff

_LAST_TURNS = 3
"""So often a turn may fail in a row once the thread is to end."""

log = logging.getLogger("runvitals.store")


class SupervisedThread:
    """Does the same again and again until it is told to end, and goes on after a pause where that fails.

    Args:
        name: of the thread, as operators see it.
        turn: one round, its waiting included. It returns False when there is nothing more to do and `closing`
            is set.
        wake: ends the waiting of `turn`.
        every_s: how long to wait between two turns that went well.
        longest_pause_s: after turns that failed, pauses double from one second up to this.

    Attributes:
        closing: it is to end.
        problem: why the last turn failed; None when it did not.
        failures: turns that failed so far.

    Example:
        >>> thread = SupervisedThread("look", look_once)
        >>> thread.start()
        >>> thread.close()
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], bool],
        wake: Callable[[], None] = lambda: None,
        every_s: float = 0.0,
        longest_pause_s: float = 60.0,
    ) -> None:
        self.name = name
        self.closing = threading.Event()
        self.problem: str | None = None
        self.failures = 0
        self._turn = turn
        self._wake = wake
        self._every_s = every_s
        self._backoff = Backoff(longest_s=longest_pause_s)
        self._thread = threading.Thread(target=self._run, name=f"runvitals-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Let it do what is left, and wait until it has ended. Closing twice does nothing."""
        self.closing.set()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        last_turns = 0
        goes_on = True
        while goes_on:
            try:
                goes_on = self._turn()
            except Exception as error:  # noqa: BLE001 - told to the operator, and tried again
                self._failed(error)
                last_turns += self.closing.is_set()
                goes_on = last_turns < _LAST_TURNS
                self.closing.wait(self._backoff.failed(time.monotonic()))
            else:
                self._backoff.worked()
                self.problem = None
                if goes_on and self._every_s:
                    self.closing.wait(self._every_s)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        problem = str(error) if isinstance(error, OSError) and str(error) else repr(error)
        if problem != self.problem:  # told once, however often it is tried again
            log.error(
                "%s fails, and goes on: %s", self.name, problem, exc_info=not isinstance(error, OSError)
            )
        self.problem = problem
