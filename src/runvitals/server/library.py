"""Open runs, shared by all requests: however many pages look at a run, its journal is read once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio
from starlette.concurrency import run_in_threadpool

from runvitals.query.model import Run
from runvitals.query.opened import UnknownRun, find_run
from runvitals.query.reader import RunReader
from runvitals.query.runs import RunList

T = TypeVar("T")
FRESH_S = 0.25
"""What was read within this time is new enough for another request."""
KEPT_BYTES = 512 * 1024 * 1024
"""Columns of runs that nobody looked at for the longest are let go beyond this."""


class Shared:
    """Something that one thread at a time reads, off the event loop, and anew only when it has aged."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        self._refresh = refresh
        self._lock = anyio.Lock()
        self._refreshed_s = -1e9

    async def use(self, work: Callable[[], T]) -> T:
        """The result of `work`, on fresh data. Not cancelled halfway when its client leaves."""
        async with self._lock:
            return await run_in_threadpool(self._fresh, work)

    def _fresh(self, work: Callable[[], T]) -> T:
        if time.monotonic() - self._refreshed_s >= FRESH_S:
            self._refresh()
            self._refreshed_s = time.monotonic()
        return work()


class OpenedRun:
    """A run that requests share."""

    def __init__(self, run_id: str, directory: str) -> None:
        self._reader = RunReader(run_id, directory)
        self._shared = Shared(self._poll)

    def _poll(self) -> None:
        self._reader.poll()

    @property
    def nbytes(self) -> int:
        return self._reader.nbytes

    async def use(self, work: Callable[[RunReader], T]) -> T:
        """The result of `work` on the run's reader, up to date.

        Raises:
            UnknownRun: the run's folder was deleted.
        """
        try:
            return await self._shared.use(lambda: work(self._reader))
        except FileNotFoundError:
            raise UnknownRun(
                f"run {self._reader.run_id!r} is gone: {self._reader.folder} was deleted"
            ) from None


class Library:
    """All runs of a data folder.

    Args:
        directory: the data folder.
        clock: the time now, in ms UTC; states of runs depend on it.
    """

    def __init__(self, directory: str, clock: Callable[[], int]) -> None:
        self.directory = directory
        self.clock = clock
        self._list = RunList(directory)
        self._runs: list[Run] = []
        self._listed = Shared(self._list_runs)
        self._opened: dict[str, OpenedRun] = {}

    def _list_runs(self) -> None:
        self._runs = self._list.runs(self.clock())

    async def runs(self) -> list[Run]:
        """Every run as it stands, newest first."""
        return await self._listed.use(lambda: self._runs)

    async def open(self, run_id: str) -> OpenedRun:
        """A run by its whole id.

        Raises:
            UnknownRun: there is none.
        """
        opened = self._opened.pop(run_id, None)
        if opened is None:
            await run_in_threadpool(self._check, run_id)
            opened = self._opened.pop(run_id, None) or OpenedRun(run_id, self.directory)
        self._opened[run_id] = opened
        self._let_go()
        return opened

    def _check(self, run_id: str) -> None:
        if find_run(run_id, self.directory) != run_id:
            raise UnknownRun(f"no run {run_id!r} in {self.directory}: the API wants whole ids")

    def _let_go(self) -> None:
        """Forget the runs that were used least recently. Who still follows one keeps it until they leave."""
        kept = sum(opened.nbytes for opened in self._opened.values())
        for run_id in list(self._opened)[:-1]:
            if kept <= KEPT_BYTES:
                return
            kept -= self._opened.pop(run_id).nbytes
