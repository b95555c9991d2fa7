"""Protection against pages of other sites: security headers, cross-site requests, DNS rebinding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; "
    "frame-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode("ascii"),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # with no-referrer, browsers send `Origin: null` with our own forms
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}

INERT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""The policy of a response that may hold scripts of others, such as an SVG image: nothing runs or loads."""
FRAMED_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "media-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts"
)
"""The policy of HTML that a run logged: its scripts run, but reach nothing. They have an origin of their own,
so neither cookies nor the page around them, and may load nothing from any network."""
_NOT_KEPT = (b"cache-control", b"no-store")
_CSP = b"content-security-policy"
_OWN_HEADERS = {
    (_CSP, INERT_POLICY.encode("ascii")): _HEADERS | {_CSP: INERT_POLICY.encode("ascii")},
    (_CSP, FRAMED_POLICY.encode("ascii")): _HEADERS
    | {_CSP: FRAMED_POLICY.encode("ascii"), b"x-frame-options": b"SAMEORIGIN"},
}
"""The headers of responses whose routes choose one of these policies."""


EMBEDDED: Final = "/-/embed/"
"""Beginning of the addresses of pages that other sites may frame, as far as the organisation allows it."""


def _no_sites() -> tuple[str, ...]:
    return ()


class SecurityHeaders:
    """Middleware that adds security headers to responses.

    A page loads only its own files, other sites cannot frame or read it, and nothing keeps what the API
    responds, unless the route says how.

    Args:
        framing_sites: returns the origins of sites that may frame pages below `EMBEDDED`; it is called in a
            thread.
    """

    def __init__(self, app: ASGIApp, framing_sites: Callable[[], Sequence[str]] = _no_sites) -> None:
        self.app = app
        self._framing_sites = framing_sites

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to the response."""
        usual = _HEADERS
        if scope["type"] == "http" and scope["path"].startswith(EMBEDDED):
            usual = _framed_by(await run_in_threadpool(self._framing_sites))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = list(message.get("headers", ()))
                headers = next((_OWN_HEADERS[pair] for pair in sent if pair in _OWN_HEADERS), usual)
                own = [pair for pair in sent if pair[0] not in _HEADERS]
                message["headers"] = [*own, *headers.items()]
                if scope["path"].startswith("/api/") and all(name != b"cache-control" for name, _ in own):
                    message["headers"].append(_NOT_KEPT)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def _framed_by(sites: Sequence[str]) -> dict[bytes, bytes]:
    """Return the headers of a page that these sites may frame."""
    if not sites:
        return _HEADERS
    policy = _POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {' '.join(sites)}")
    headers = {**_HEADERS, _CSP: policy.encode("ascii")}
    del headers[b"x-frame-options"]  # it can name no sites
    return headers


class SameOrigin:
    """Middleware that rejects changes requested by pages of other sites, even with valid credentials.

    Browsers name the site that a request comes from: in `Sec-Fetch-Site` (over HTTPS and to this machine),
        and in
    `Origin` unless it is a plain GET. Other clients send neither.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request that changes something and comes from the page of another site."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS or _is_same_origin(scope):
            await self._app(scope, receive, send)
            return
        error = f"{scope['method']} {scope['path'][:300]}: pages of other sites cannot change anything here"
        await JSONResponse({"error": error}, status_code=403)(scope, receive, send)


SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def _is_same_origin(scope: Scope) -> bool:
    """Return whether no header says that the request comes from a page of another site."""
    site, origin = _site_headers(scope)
    if site is not None:
        return site in (b"same-origin", b"none")
    return origin is None or _is_own(origin, scope)


def names_own_origin(scope: Scope) -> bool:
    """Return whether a header says that the request comes from a page of this server."""
    site, origin = _site_headers(scope)
    if site is not None:
        return site == b"same-origin"
    return origin is not None and _is_own(origin, scope)


def _site_headers(scope: Scope) -> tuple[bytes | None, bytes | None]:
    values = {name: value for name, value in scope["headers"] if name in (b"sec-fetch-site", b"origin")}
    return values.get(b"sec-fetch-site"), values.get(b"origin")


def _is_own(origin: bytes, scope: Scope) -> bool:
    _, _, host = origin.decode("latin-1").lower().partition("://")
    return bool(host) and host == _host(scope).lower()


class LoopbackNames:
    """Middleware that answers only requests to a loopback name.

    A page of another site can have its own name point to 127.0.0.1 ("DNS rebinding"), and then has the same
    origin as this server. Its requests have that name in `Host`.

    Args:
        hint: how to have this server answer to other names.
    """

    def __init__(self, app: ASGIApp, hint: str = "") -> None:
        self._app = app
        self._hint = hint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request for a host that is not this machine."""
        host = _host(scope) if scope["type"] == "http" else "localhost"
        if is_loopback(host):
            await self._app(scope, receive, send)
            return
        names = ", ".join(LOOPBACK_NAMES)
        error = f"this server answers to {names} only, not to {host[:100]!r}{self._hint}"
        await JSONResponse({"error": error}, status_code=403)(scope, receive, send)


def is_for_loopback(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request was sent to a loopback name."""
    host = next((value for name, value in headers if name == b"host"), b"")
    return is_loopback(host.decode("latin-1"))


def _host(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"host":
            host: str = value.decode("latin-1")
            return host
    return ""


def is_loopback(host: str) -> bool:
    """Return whether a `Host` header is a loopback name.

    Example:
        >>> is_loopback("localhost:8900"), is_loopback("rebind.example:8900")
        (True, False)
    """
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name.lower() in LOOPBACK_NAMES
