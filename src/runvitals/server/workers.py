"""The threads in which questions are answered: so many at once, and each for so long at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from runvitals import deadline

T = TypeVar("T")
MOST_S = 10.0
"""For an answer, and beside it for a thread to be free."""
_MOST_WAITING = 5000
QUICK_THREADS = 8
"""For questions that go through no samples."""
THOROUGH_THREADS = 3
"""For those that do."""


class Busy(Exception):
    """There are more questions than can be answered; the text says so."""


class Workers:
    """Some threads.

    Threads that compute in Python take turns, so more of them make nothing faster, and all else slower.

    Args:
        threads: as many answer at once; other questions wait.
        most_s: an answer that takes longer is given up.

    Example:
        >>> await Workers(2).answer(lambda: sum(range(1000)))
        499500
    """

    def __init__(self, threads: int, most_s: float = MOST_S) -> None:
        self._most_s = self._waits_s = most_s
        self._places = anyio.CapacityLimiter(threads)
        self._threads = anyio.CapacityLimiter(threads + 1)

    async def answer(self, work: Callable[[], T], first: Callable[[], object] | None = None) -> T:
        """The result of `work`. Not cancelled halfway when its client leaves.

        Args:
            first: is done before, however long it takes.

        Raises:
            TooSlow: it took too long.
            Busy: too many wait.
        """
        if self._places.statistics().tasks_waiting >= _MOST_WAITING:
            raise Busy("too many requests are waiting: try again later")

        def timed() -> T:
            if first is not None:
                first()
            with deadline.within(self._most_s):
                return work()

        place = object()
        try:
            with anyio.fail_after(self._waits_s):
                await self._places.acquire_on_behalf_of(place)
        except TimeoutError:
            raise Busy("the server is busy with other requests: try again later") from None
        try:
            return await anyio.to_thread.run_sync(timed, limiter=self._threads)
        finally:
            self._places.release_on_behalf_of(place)
