"""Reads request bodies, within a size and a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Receive

from runvitals.server.http.request_errors import HttpRejection, too_large

_CHECK_EVERY_S = 1.0
_MIN_CHECK_S = 0.05


class ClientDisconnected(Exception):
    """The connection ended before the request did."""


class BodyReader:
    """Reads bodies.

    A timer per request would cost as much as the rest of the request, so one timer checks all requests.

    Args:
        max_bytes: a longer body is rejected with 413.
        timeout_s: a body that takes longer to arrive is rejected with 408, up to a second late.
    """

    def __init__(self, max_bytes: int, timeout_s: float) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._reading: dict[asyncio.Task[None], float] = {}
        self._timed_out: set[asyncio.Task[None]] = set()
        self._checking = False

    def check_length(self, length: int) -> None:
        """Raise HttpRejection 413 if the declared length of the body is too large."""
        if length > self._max_bytes:
            raise too_large(f"the body has {length} bytes; at most {self._max_bytes} are allowed")

    async def read(self, receive: Receive, reserve: Callable[[int], None]) -> bytes:
        """The body of a request.

        Args:
            reserve: called with the number of bytes received so far; may raise.

        Raises:
            HttpRejection: 413, 408.
            ClientDisconnected: the connection ended.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._reading[task] = loop.time()
        if not self._checking:
            self._checking = True
            loop.call_later(self._check_every_s, self._check_timeouts, loop)
        try:
            return await self._read(receive, reserve)
        except asyncio.CancelledError:
            if task not in self._timed_out:
                raise
            self._timed_out.discard(task)
            raise HttpRejection(408, f"the body did not arrive within {self._timeout_s:g} s") from None
        finally:
            del self._reading[task]

    async def _read(self, receive: Receive, reserve: Callable[[int], None]) -> bytes:
        body = bytearray()  # a list of one-byte parts would take forty times the memory
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnected
            part = message.get("body", b"")
            more = message.get("more_body", False)
            if not body and not more:
                if len(part) > self._max_bytes:
                    raise self._too_large()
                return bytes(part)
            if len(body) + len(part) > self._max_bytes:
                raise self._too_large()
            body += part
            reserve(len(body))
            if not more:
                return bytes(body)

    def _too_large(self) -> HttpRejection:
        return too_large(f"the body has more than {self._max_bytes} bytes, the largest size allowed")

    @property
    def _check_every_s(self) -> float:
        return min(_CHECK_EVERY_S, max(self._timeout_s / 4, _MIN_CHECK_S))

    def _check_timeouts(self, loop: asyncio.AbstractEventLoop) -> None:
        deadline_s = loop.time() - self._timeout_s
        for task in [task for task, started_s in self._reading.items() if started_s < deadline_s]:
            self._timed_out.add(task)
            task.cancel()
        if self._reading:
            loop.call_later(self._check_every_s, self._check_timeouts, loop)
        else:
            self._checking = False
