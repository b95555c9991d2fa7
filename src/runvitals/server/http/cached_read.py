"""A value that many requests share: the first request that finds it stale refreshes it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio

from runvitals.server.http.workers import Workers

T = TypeVar("T")
FRESH_S = 0.25
"""A value that was read within this time is not refreshed."""


def _nothing() -> None:
    """Nothing needs to be read first, or tells that the data is stale."""


class CachedRead:
    """Runs work on shared data in one thread at a time, and refreshes the data before it if it is stale.

    Args:
        refresh: reads the data.
        stamp: quickly reads something that differs if the data is stale although it was read a moment ago.
    """

    def __init__(self, refresh: Callable[[], None], stamp: Callable[[], object] = _nothing) -> None:
        self._refresh = refresh
        self._stamp = stamp
        self._lock = anyio.Lock()
        self._refreshed_s = -1e9
        self._refreshed_stamp: object = None

    async def use(self, work: Callable[[], T], workers: Workers) -> T:
        """The result of `work`, on fresh data.

        Raises:
            TooSlow: `work` took too long.
            Busy: too many requests are waiting.
        """
        with workers.waiting():
            await self._lock.acquire()
        try:
            return await workers.run(work, self._refresh_if_stale)
        finally:
            self._lock.release()

    async def change(self, work: Callable[[], T], workers: Workers) -> T:
        """The result of `work`, which changes the data: it is refreshed at the next use. Errors as `use`."""
        with workers.waiting():
            await self._lock.acquire()
        try:
            return await workers.run(work, _nothing)
        finally:
            self.invalidate()
            self._lock.release()

    @property
    def users(self) -> int:
        """How many requests use it or wait for it."""
        state = self._lock.statistics()
        return state.locked + state.tasks_waiting

    def invalidate(self) -> None:
        """Refresh at the next use, because something was changed."""
        self._refreshed_s = -1e9

    def _refresh_if_stale(self) -> None:
        stamp = self._stamp()
        if time.monotonic() - self._refreshed_s >= FRESH_S or stamp != self._refreshed_stamp:
            # Before, as it may become stale while it is read.
            self._refreshed_s, self._refreshed_stamp = time.monotonic(), stamp
            try:
                self._refresh()
            except BaseException:
                self.invalidate()
                raise
