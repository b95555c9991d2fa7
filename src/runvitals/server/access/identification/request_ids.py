"""Ids of requests: in the header `X-Request-Id` of the response, and in its events of the audit log."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.http.request_id import HEADER, new_request_id

_KEY: Final = "runvitals.request_id"


class RequestIds:
    """Middleware that gives every request an id.

    An id that the client sends is ignored: it could be that of another request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a new id, which the response gets too."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()
        scope[_KEY] = request_id

        async def with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self._app(scope, receive, with_id)


def request_id_of(scope: Scope) -> str | None:
    """Return the id of a request; None where `RequestIds` is not used."""
    return scope.get(_KEY)
