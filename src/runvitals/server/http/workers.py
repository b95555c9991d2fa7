"""Thread pools for requests, with a limit on waiting requests and a deadline for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import anyio
import anyio.to_thread

from runvitals.base import deadline
from runvitals.server.http.allocator import return_freed_memory

T = TypeVar("T")
DEADLINE_S = 10.0
"""Limit for the work of a request, and again for the wait until a thread is free."""
_MAX_WAITING = 5000
QUICK_THREADS = 8
"""For requests that read no samples."""
THOROUGH_THREADS = 3
"""For requests that read samples."""
_KEPT_S = 10.0
"""How long memory that requests freed may stay with this process."""


class Busy(Exception):
    """The server has too many requests; the text is the error message for the client."""


class Workers:
    """A thread pool.

    Threads that compute in Python take turns. More of them do not make anything faster, but slow down
    everything else.

    Args:
        threads: how many requests run at the same time; others wait.
        deadline_s: work that takes longer is cancelled.
        goes_on: when the client leaves, because the work changes something.

    Example:
        >>> await Workers(2).run(lambda: sum(range(1000)))
        499500
    """

    def __init__(self, threads: int, deadline_s: float = DEADLINE_S, *, goes_on: bool = False) -> None:
        self._goes_on = goes_on
        self._deadline_s = self._waits_s = deadline_s
        self._slots = anyio.CapacityLimiter(threads)
        self._threads = anyio.CapacityLimiter(threads + 1)
        self._returned_s = time.monotonic()

    async def run(self, work: Callable[[], T], first: Callable[[], object] | None = None) -> T:
        """The result of `work`.

        When its client has left, it ends at its next `deadline.check`, unless it goes on.

        Args:
            first: called before `work`, without a deadline.

        Raises:
            TooSlow: `work` took too long.
            Busy: too many requests are waiting.
        """
        if self._slots.statistics().tasks_waiting >= _MAX_WAITING:
            raise Busy("too many requests are waiting: try again later")

        def timed() -> T:
            if first is not None:
                first()
            with deadline.within(self._deadline_s):
                result = work()
            self._return_memory()
            return result

        slot = object()
        with self.waiting():
            await self._slots.acquire_on_behalf_of(slot)
        try:
            with deadline.while_connected(None) if self._goes_on else nullcontext():
                return await anyio.to_thread.run_sync(timed, limiter=self._threads)
        finally:
            self._slots.release_on_behalf_of(slot)

    def _return_memory(self) -> None:
        """Return what requests freed to the system, from time to time."""
        if time.monotonic() - self._returned_s >= _KEPT_S:
            self._returned_s = time.monotonic()
            return_freed_memory()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Limits how long a request waits for its turn.

        Raises:
            Busy: it took too long.
        """
        try:
            with anyio.fail_after(self._waits_s):
                yield
        except TimeoutError:
            raise Busy("the server is busy with other requests: try again later") from None
