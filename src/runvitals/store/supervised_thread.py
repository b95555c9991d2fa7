"""Background threads that report failures and continue."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from runvitals.base.backoff import Backoff
from runvitals.store.errors import MetadataStoreUnavailable

_LAST_TURNS = 3
"""Failed turns after which a thread that is closing gives up."""
_LONG_WAIT_S = 5.0
"""For the end of a thread, after which the log says what is waited for."""

log = logging.getLogger("runvitals.store")


class SupervisedThread:
    """Repeats a function until it is closed. After a failure it pauses and continues.

    Args:
        name: name of the thread in `/readyz`, metrics and logs.
        turn: the function; it may wait. Returns False once `closing` is set and nothing is left to do.
        wake: makes a waiting `turn` return.
        every_s: pause between two successful turns.
        longest_pause_s: pauses after failed turns double from one second up to this.

    Attributes:
        closing: set by `close`.
        problem: why the last turn failed; None if it succeeded.
        failures: number of failed turns.

    Example:
        >>> thread = SupervisedThread("cleanup", delete_expired, every_s=60)
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
        """Start the thread."""
        self._thread.start()

    def close(self, longest_wait_s: float | None = None) -> None:
        """Let it finish its work, and wait for its end, or this long. Closing twice has no effect."""
        self.closing.set()
        self._wake()
        if self._thread.ident is None:
            return
        self._thread.join(_LONG_WAIT_S if longest_wait_s is None else longest_wait_s)
        if longest_wait_s is None and self._thread.is_alive():
            log.warning("waits for the thread %s to end", self.name)
            self._thread.join()

    def _run(self) -> None:
        last_turns = 0
        running = True
        while running:
            try:
                running = self._turn()
            except Exception as error:  # noqa: BLE001 - logged, and retried
                self._note_failure(error)
                last_turns += self.closing.is_set()
                running = last_turns < _LAST_TURNS
                self.closing.wait(self._backoff.note_failure(time.monotonic()))
            else:
                self._backoff.note_success()
                self.problem = None
                if running and self._every_s:
                    self.closing.wait(self._every_s)

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        expected = isinstance(error, (OSError, MetadataStoreUnavailable))
        problem = str(error) if expected and str(error) else repr(error)
        if problem != self.problem:  # logged once, not at every retry
            log.error("thread %s failed and will retry: %s", self.name, problem, exc_info=not expected)
        self.problem = problem
