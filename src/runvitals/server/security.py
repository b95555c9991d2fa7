"""What keeps a server on loopback from being used by pages of other sites."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class LoopbackOnly:
    """Answers only requests sent to a loopback name, and forbids pages everything but their own files.

    A page of another site can have its own name point to 127.0.0.1 ("DNS rebinding") and would then be of the
    same origin as this server; but its requests carry its name in `Host`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        host = Headers(scope=scope).get("host", "")
        if not is_loopback(host):
            names = ", ".join(LOOPBACK_NAMES)
            refusal = JSONResponse(
                {"error": f"this server answers to {names} only, not to {host[:100]!r}"}, status_code=403
            )
            await refusal(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)


def is_loopback(host: str) -> bool:
    """Whether a `Host` header names this machine's loopback.

    Example:
        >>> is_loopback("localhost:8900"), is_loopback("rebind.example:8900")
        (True, False)
    """
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name.lower() in LOOPBACK_NAMES
