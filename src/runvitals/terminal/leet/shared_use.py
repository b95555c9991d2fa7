"""`SharedUse`: what threads read from is closed when none of them uses it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Closed(OSError):
    """The object was closed before this use began."""


class SharedUse:
    """Counts the uses of something that the screen may close at any time.

    A screen reads in threads, which continue when the user leaves it. If it closed a file meanwhile, the
    thread would fail. If it closed a connection, the thread would open another one, which nobody would close.

    Args:
        close: called once, when no use is left after `close()`.

    Example:
        >>> use = SharedUse(connection.close)
        >>> with use():
        ...     connection.get("/runs")
        >>> use.close()
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._uses = 0
        self._is_closed = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Use it while `with` lasts.

        Raises:
            Closed: it was closed.
        """
        with self._lock:
            if self._is_closed:
                raise Closed("it was closed before it could be read")
            self._uses += 1
        try:
            yield
        finally:
            with self._lock:
                self._uses -= 1
                is_last = self._is_closed and not self._uses
            if is_last:
                self._close()

    def close(self) -> None:
        """Close it now, or after the last use. Closing twice has no effect."""
        with self._lock:
            is_idle = not self._is_closed and not self._uses
            self._is_closed = True
        if is_idle:
            self._close()
