"""The descriptors that a monitor waits for, and who is called when one has something to say."""

from __future__ import annotations

from select import POLLIN, POLLNVAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Poller(Protocol):
        """What `select.poll()` makes."""

        def register(self, fd: int, eventmask: int, /) -> None: ...

        def unregister(self, fd: int, /) -> None: ...

        def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]: ...


LONGEST_WAIT_S = 3600.0  # poll(2) counts milliseconds in 31 bits


class Descriptors:
    """Watched descriptors.

    Args:
        poller: `select.poll()`, or a test's.

    Example:
        >>> descriptors = Descriptors(select.poll())
        >>> descriptors.watch(door.fd, accept)
        >>> descriptors.hear(wait_s=0.5)   # calls accept(), if somebody knocks within half a second
    """

    __slots__ = ("_calls", "_poller")

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._calls: dict[int, Callable[[], object]] = {}

    def watch(self, fd: int, call: Callable[[], object]) -> None:
        """Have a function called whenever `fd` can be read, or its other side is gone."""
        self._calls[fd] = call
        self._poller.register(fd, POLLIN)

    def forget(self, fd: int) -> None:
        """Watch it no longer; nothing if it is not watched. Before or after it was closed."""
        if self._calls.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def hear(self, wait_s: float) -> None:
        """Poll once, and call whoever waits for what can be read now.

        Args:
            wait_s: how long to wait for the first; 0 or less: not at all.
        """
        wait_ms = min(max(wait_s, 0.0), LONGEST_WAIT_S) * 1000.0
        found = self._poller.poll(wait_ms)
        if not found:
            return
        for fd, event, call in [(fd, event, self._calls.get(fd)) for fd, event in found]:
            if call is None or self._calls.get(fd) is not call:
                continue  # one of those before it has closed it, and its number may be another's by now
            if event & POLLNVAL:
                self.forget(fd)  # it was closed behind our back; poll would return at once for ever
            else:
                call()
