"""Something that many requests read, kept fresh by whoever comes first."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio

from runvitals.server.workers import Workers

T = TypeVar("T")
FRESH_S = 0.25
"""What was read within this time is new enough for another request."""


class Shared:
    """Something that one thread at a time reads, off the event loop, and anew only when it has aged."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        self._refresh = refresh
        self._lock = anyio.Lock()
        self._refreshed_s = -1e9

    async def use(self, work: Callable[[], T], workers: Workers) -> T:
        """The result of `work`, on fresh data.

        Raises:
            TooSlow: `work` takes too long.
            Busy: too many questions wait.
        """
        async with self._lock:
            return await workers.answer(work, self._freshen)

    @property
    def users(self) -> int:
        """How many use it, or wait to."""
        state = self._lock.statistics()
        return state.locked + state.tasks_waiting

    def stale(self) -> None:
        """Read anew at the next use: something was changed."""
        self._refreshed_s = -1e9

    def _freshen(self) -> None:
        if time.monotonic() - self._refreshed_s >= FRESH_S:
            self._refresh()
            self._refreshed_s = time.monotonic()
