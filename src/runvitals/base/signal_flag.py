"""A flag for handlers of signals."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class SignalFlag:
    """A flag that a signal handler sets, also while its own thread waits for it.

    A `threading.Event` has a lock. A handler that runs while `wait()` has it waits for it forever.

    Example:
        >>> stop = SignalFlag()
        >>> previous = signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
        >>> while not stop.wait(1.0):
        ...     deliver()
    """

    def __init__(self) -> None:
        self._is_set = False
        # Documented to be reentrant: https://docs.python.org/3/library/queue.html#simplequeue-objects
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Set the flag, and wake the thread that waits for it."""
        self._is_set = True
        self._wakes.put(None)

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def wait(self, timeout_s: float) -> bool:
        """Wait until the flag is set, at most some seconds; return whether it is."""
        if not self._is_set:
            with suppress(Empty):
                self._wakes.get(timeout=timeout_s)
        return self._is_set
