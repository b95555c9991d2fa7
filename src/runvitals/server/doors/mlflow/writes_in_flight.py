"""The metrics of a run that are being stored: what may meet them in the store waits for them.

Whether a value replaces another one with its timestamp and step is decided by what is stored. Of two requests
at once, neither would find the value of the other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runvitals.base.buckets import Integers


@dataclass(slots=True, eq=False)
class _Write:
    """Timestamps from `first` to `last`. `done`: None: nobody waits for it."""

    first: int
    last: int
    done: asyncio.Future[None] | None = None


class WritesInFlight:
    """The writes of one run that are not finished. For use in the event loop only."""

    def __init__(self) -> None:
        self._writes: list[_Write] = []

    @asynccontextmanager
    async def alone(self, timestamps: Integers) -> AsyncIterator[None]:
        """Wait until no value with a timestamp between these is being stored, and be the only one that does.

        Example:
            >>> async with session.in_flight.alone(metrics.timestamps):
            ...     await store(metrics)
        """
        if not len(timestamps):
            yield
            return
        write = _Write(int(timestamps.min()), int(timestamps.max()))
        while (other := self._meeting(write)) is not None:
            if other.done is None:
                other.done = asyncio.get_running_loop().create_future()
            await asyncio.shield(other.done)
        self._writes.append(write)
        try:
            yield
        finally:
            self._writes.remove(write)
            if write.done is not None:
                write.done.set_result(None)

    def _meeting(self, write: _Write) -> _Write | None:
        for other in self._writes:
            if other.first <= write.last and write.first <= other.last:
                return other
        return None
