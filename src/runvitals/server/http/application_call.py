"""Calls an application in its own process, without a socket."""

from __future__ import annotations

from typing import NamedTuple

import anyio
from starlette.types import ASGIApp, Message, Scope


class ApplicationResponse(NamedTuple):
    """What an application sent."""

    status: int
    headers: dict[bytes, bytes]
    content: bytes


async def response_of(app: ASGIApp, scope: Scope, body: bytes = b"") -> ApplicationResponse:
    """Return the response of an application to a request.

    Args:
        scope: of the request, as ASGI has it.
    """
    content, status = bytearray(), 0
    headers: dict[bytes, bytes] = {}

    bodies = [body]

    async def receive() -> Message:
        if not bodies:
            await anyio.sleep_forever()  # the client stays until it has the response
        return {"type": "http.request", "body": bodies.pop()}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        headers.update(message.get("headers", ()))
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return ApplicationResponse(status, headers, bytes(content))
