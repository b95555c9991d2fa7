"""What keeps a server from being used by pages of other sites."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode("ascii"),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # with no-referrer, browsers send `Origin: null` with our own forms
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class Guarded:
    """Forbids pages everything but their own files, and other sites to frame or read them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [pair for pair in message.get("headers", ()) if pair[0] not in _HEADERS]
                message["headers"] = [*others, *_HEADERS.items()]
            await send(message)

        await self.app(scope, receive, send_guarded if scope["type"] == "http" else send)


class SameOrigin:
    """Lets pages of other sites change nothing, whatever their requests carry.

    Browsers say of each request which site it comes from: in `Sec-Fetch-Site` (over HTTPS and to this
    machine), and in `Origin` wherever it is not a plain GET. Programs send neither.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _SAFE_METHODS or _is_of_this_site(scope):
            await self._app(scope, receive, send)
            return
        error = f"{scope['method']} {scope['path'][:300]}: pages of other sites may change nothing here"
        await JSONResponse({"error": error}, status_code=403)(scope, receive, send)


_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def _is_of_this_site(scope: Scope) -> bool:
    said = {name: value for name, value in scope["headers"] if name in (b"sec-fetch-site", b"origin")}
    site = said.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = said.get(b"origin")
    if origin is None:
        return True
    _, _, host = origin.decode("latin-1").lower().partition("://")
    return bool(host) and host == _host(scope).lower()


class LoopbackNames:
    """Answers only requests sent to a loopback name.

    A page of another site can have its own name point to 127.0.0.1 ("DNS rebinding") and would then be of the
    same origin as this server; but its requests carry its name in `Host`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = _host(scope) if scope["type"] == "http" else "localhost"
        if is_loopback(host):
            await self._app(scope, receive, send)
            return
        names = ", ".join(LOOPBACK_NAMES)
        error = f"this server answers to {names} only, not to {host[:100]!r}"
        await JSONResponse({"error": error}, status_code=403)(scope, receive, send)


def is_for_loopback(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request was sent to a loopback name."""
    host = next((value for name, value in headers if name == b"host"), b"")
    return is_loopback(host.decode("latin-1"))


class LoopbackOnly(Guarded):
    """`LoopbackNames` and `SameOrigin`, with all answers `Guarded`."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(LoopbackNames(SameOrigin(app)))


def _host(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"host":
            host: str = value.decode("latin-1")
            return host
    return ""


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
