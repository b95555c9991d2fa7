"""Requests that last, such as event streams: they end when the right to them does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RECHECK_S = 2.0
"""How often the credential of a request is checked while it lasts: a revoked one ends it within 5 s."""


class LongRequest:
    """A request that is checked again while it lasts.

    Args:
        recheck: returns None to let it continue, otherwise the response that replaces its own. An event
            stream that has begun gets an event `unauthorised` instead. The connection of anything else is
            closed within the response: a file without its end must not look like a whole one.
    """

    def __init__(self, recheck: Callable[[], Awaitable[Response | None]]) -> None:
        self._recheck = recheck
        self._ended: Response | None = None
        self._started = self._complete = self._is_stream = False

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out a request until its requester loses the right to it."""

        async def send_and_note(message: Message) -> None:
            if self._ended is not None:
                return
            self._started = True
            if message["type"] == "http.response.start":
                self._is_stream = _is_event_stream(message)
            self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        request = asyncio.ensure_future(app(scope, receive, send_and_note))
        try:
            while not (await asyncio.wait((request,), timeout=RECHECK_S))[0]:
                self._ended = await self._recheck()
                if self._ended is not None:
                    request.cancel()
                    await asyncio.wait((request,))
                    break
        finally:
            if not request.done():
                request.cancel()
        if self._ended is None:
            request.result()
        elif not self._started:
            await self._ended(scope, receive, send)
        elif self._is_stream and not self._complete:
            last = _unauthorised_event(self._ended)
            await send({"type": "http.response.body", "body": last, "more_body": False})


def _is_event_stream(start: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )


def _unauthorised_event(response: Response) -> bytes:
    data = json.dumps({"status": response.status_code})
    return f"event: unauthorised\ndata: {data}\n\n".encode("ascii")
