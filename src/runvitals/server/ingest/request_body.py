"""Bodies of requests: no longer than allowed, and not slower."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Receive

from runvitals.server.ingest.errors import Refused, too_large

_LOOK_S = 1.0
_SHORTEST_LOOK_S = 0.05


class ClientLeft(Exception):
    """The connection ended before the request did."""


class Bodies:
    """Reads bodies.

    A timer for each would cost as much as all else that is done for a request, so one timer looks after all.

    Args:
        most_bytes: a longer body is refused, 413.
        most_s: so is one that takes longer to arrive, 408. Up to a second more is possible.
    """

    def __init__(self, most_bytes: int, most_s: float) -> None:
        self._most_bytes = most_bytes
        self._most_s = most_s
        self._reading: dict[asyncio.Task[None], float] = {}
        self._late: set[asyncio.Task[None]] = set()
        self._looking = False

    def check_length(self, length: int) -> None:
        """
        Raises:
            Refused: 413 for a body that is going to be too long.
        """
        if length > self._most_bytes:
            raise too_large(f"the body has {length} bytes; at most {self._most_bytes} are allowed")

    async def read(self, receive: Receive, hold: Callable[[int], None]) -> bytes:
        """The body of a request.

        Args:
            hold: is told how much there is so far, and may raise.

        Raises:
            Refused: 413, 408.
            ClientLeft: the connection ended.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._reading[task] = loop.time()
        if not self._looking:
            self._looking = True
            loop.call_later(self._look_s, self._look, loop)
        try:
            return await self._read(receive, hold)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            self._late.discard(task)
            raise Refused(408, f"the body did not arrive within {self._most_s:g} s") from None
        finally:
            del self._reading[task]

    async def _read(self, receive: Receive, hold: Callable[[int], None]) -> bytes:
        body = bytearray()  # not a list of parts: those of a byte each would take forty times as much
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientLeft
            part = message.get("body", b"")
            more = message.get("more_body", False)
            if not body and not more:
                if len(part) > self._most_bytes:
                    raise self._too_large()
                return bytes(part)
            if len(body) + len(part) > self._most_bytes:
                raise self._too_large()
            body += part
            hold(len(body))
            if not more:
                return bytes(body)

    def _too_large(self) -> Refused:
        return too_large(f"the body has more than {self._most_bytes} bytes; at most so many are allowed")

    @property
    def _look_s(self) -> float:
        return min(_LOOK_S, max(self._most_s / 4, _SHORTEST_LOOK_S))

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        begun_s = loop.time() - self._most_s
        for task in [task for task, since_s in self._reading.items() if since_s < begun_s]:
            self._late.add(task)
            task.cancel()
        if self._reading:
            loop.call_later(self._look_s, self._look, loop)
        else:
            self._looking = False
