"""Limits how many event streams a client has open."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from runvitals.server.http.errors import too_many

CLIENT_KEY: Final = "runvitals.client"
"""Where the ASGI scope of a shared server has whose streams are counted together."""
MAX_OF_CLIENT: Final = 1000
"""A tenth of all connections. A tab of a browser has one or two, while it is visible."""
_RETRY_S = 30.0


class OpenStreams:
    """Counts the event streams of each client: an account or guest link, otherwise an address.

    For use in the event loop's thread only.

    Args:
        most: open at the same time.
    """

    def __init__(self, most: int = MAX_OF_CLIENT) -> None:
        self.most = most
        self._open = Counter[object]()

    def add(self, client: object) -> None:
        """Count a stream that is opened.

        Raises:
            HTTPException: 429: the client has as many as it may have.
        """
        if self._open[client] >= self.most:
            raise too_many(
                f"{self.most} event streams are open already: close some, or try again later", _RETRY_S
            )
        self._open[client] += 1

    def remove(self, client: object) -> None:
        """Forget a client whose stream has ended."""
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]


class EventStream(StreamingResponse):
    """A response with server-sent events, counted while it lasts."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, streams: OpenStreams, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers={"cache-control": "no-store"})
        self._streams = streams
        self._client = _client_of(request)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        self._streams.add(self._client)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.remove(self._client)


def _client_of(request: Request) -> object:
    address = request.client.host if request.client is not None else ""
    return request.scope.get(CLIENT_KEY, address)
