"""A value that is read anew at each request, for which no request waits long: what is read may not answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, TypeVar, cast

T = TypeVar("T")
MOMENT_S: Final = 0.05
"""How long a request waits for what may not answer."""


class LatestReading(Generic[T]):
    """Reads a value in a thread of its own, one at a time; who asks gets the last one if that takes long.

    A thread of a pool would not do: all of them may wait for the same thing.

    Args:
        read: reads the value.
        before: the value until the first reading.

    Example:
        >>> counts = LatestReading(store.stats, NOTHING)
        >>> await counts.newest()
        StoreStats(runs=2, ...)
    """

    def __init__(self, read: Callable[[], T], before: T) -> None:
        self._read = read
        self._last = before
        self._reading: Future[tuple[T, None] | tuple[None, Exception]] | None = None
        self._begun_s = 0.0

    async def newest(self) -> T:
        """The value as it is now, or as it was last if it cannot be read within a moment.

        Raises:
            Exception: anything that `read` raises.
        """
        if self._reading is None:
            self._reading, self._begun_s = Future(), time.monotonic()
            threading.Thread(target=self._run, args=(self._reading,), daemon=True).start()
        reading = self._reading
        left_s = self._begun_s + MOMENT_S - time.monotonic()
        if left_s > 0:
            await asyncio.wait([asyncio.wrap_future(reading)], timeout=left_s)
        if reading.done():
            self._reading = None
            value, error = reading.result()
            if error is not None:
                raise error
            self._last = cast(T, value)
        return self._last

    @property
    def late_s(self) -> float:
        """How long the present reading has taken; 0 if there is none."""
        return 0.0 if self._reading is None else time.monotonic() - self._begun_s

    def _run(self, reading: Future[tuple[T, None] | tuple[None, Exception]]) -> None:
        try:
            reading.set_result((self._read(), None))
        except Exception as error:  # noqa: BLE001 - raised where the value is asked for
            reading.set_result((None, error))
