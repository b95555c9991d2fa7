"""The file descriptors that the monitor waits for, and a callback for each."""

from __future__ import annotations

from select import POLLIN, POLLNVAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Poller(Protocol):
        """`select.poll()`, or a test's."""

        def register(self, fd: int, eventmask: int, /) -> None:
            """Watch a descriptor."""

        def unregister(self, fd: int, /) -> None:
            """Stop watching a descriptor."""

        def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]:
            """Wait for events of the watched descriptors."""


MAX_WAIT_S = 3600.0  # poll(2) takes milliseconds as a 32-bit signed integer


class DescriptorWatcher:
    """Calls a function when a file descriptor becomes readable.

    Args:
        poller: `select.poll()`, or a test's.

    Example:
        >>> watcher = DescriptorWatcher(select.poll())
        >>> watcher.watch(listener.fd, accept)
        >>> watcher.dispatch(wait_s=0.5)   # calls accept() if a connection arrives within half a second
    """

    __slots__ = ("_callbacks", "_poller")

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._callbacks: dict[int, Callable[[], object]] = {}

    def watch(self, fd: int, callback: Callable[[], object]) -> None:
        """Call `callback` whenever `fd` is readable or its peer has closed it."""
        self._callbacks[fd] = callback
        self._poller.register(fd, POLLIN)

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`, before or after it was closed. Does nothing if it is not watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def dispatch(self, wait_s: float) -> None:
        """Poll once, and call the callbacks of all readable descriptors.

        Args:
            wait_s: how long to wait for the first one; 0 or less: not at all.
        """
        if not 0.0 <= wait_s <= MAX_WAIT_S:
            wait_s = min(max(wait_s, 0.0), MAX_WAIT_S)
        ready = self._poller.poll(wait_s * 1000.0)
        if not ready:
            return
        for fd, event, callback in [(fd, event, self._callbacks.get(fd)) for fd, event in ready]:
            if callback is None or self._callbacks.get(fd) is not callback:
                continue  # an earlier callback has closed it, and its number may already be reused
            if event & POLLNVAL:
                self.unwatch(fd)  # it was closed without `unwatch`; poll would return immediately for ever
            else:
                callback()
