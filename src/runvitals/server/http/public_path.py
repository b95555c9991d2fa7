"""A server below a path of another one, such as `/runvitals/` of a proxy or `/user/ada/proxy/8900/` of a hub.

Most proxies cut that path off before they pass a request on, and some keep it (`--path`). Browsers have it in
their address. So what the page loads, and where redirects lead, is said relative to the address of a request:
the server need not know the path, and no header can change it. Two things do need it: whole addresses that
programs get, and cookies, which other servers behind the same proxy must not get. They take it from `--path`,
or from `X-Forwarded-Prefix` of a trusted proxy.
"""

from __future__ import annotations

import re
from collections.abc import Container
from contextlib import suppress
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.model.local_path import checked_server_path

_KEY: Final = "runvitals.public_path"
_HEADER: Final = b"x-forwarded-prefix"
_MAX_STEPS: Final = 40
"""More than any address of the page has: a long address of slashes must not make a page of a megabyte."""
_HOST_COOKIE, _SECURE_COOKIE = "__Host-", "__Secure-"
"""Browsers take a cookie of the first kind for all paths only, and of the second for one."""
_EVERYWHERE = re.compile(rb"(?i)(; path=/)(?=;|$)")


def to_root(scope: Scope) -> str:
    """Return the way from the address of a request to the root of the server.

    Example:
        >>> to_root({"path": "/", "raw_path": b"/"}), to_root({"path": "/a/b c", "raw_path": b"/a/b%20c"})
        ('./', '../')
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return "../" * min(raw.partition(b"?")[0].count(b"/") - 1, _MAX_STEPS) or "./"


def base_url(request: Request) -> str:
    """Return the address of the server as the client of a request knows it, without a slash at its end."""
    return str(request.base_url).rstrip("/") + str(request.scope.get(_KEY, ""))


class BelowPath:
    """Middleware that cuts off the path that a proxy kept, and redirects relative to the request's address.

    Requests without that path are answered as well: those of the same network, such as probes.

    Args:
        app: an application with an event `closing`.
        kept: the path, see `checked_server_path`.
    """

    def __init__(self, app: ASGIApp, closing: anyio.Event, kept: str = "") -> None:
        self._app = app
        self._kept = kept
        self.fast_path = getattr(app, "fast_path", None)
        self.closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kept = self._kept
        if kept:
            if scope["path"] == kept:
                await RedirectResponse(f"{kept.rpartition('/')[2]}/", 307)(scope, receive, send)
                return
            start = kept.encode() + b"/"
            if scope["path"].startswith(f"{kept}/") and scope["raw_path"].startswith(start):
                cut = {"path": scope["path"][len(kept) :], "raw_path": scope["raw_path"][len(kept) :]}
                scope = {**scope, **cut, _KEY: kept}

        async def send_relative(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, _relative(value, scope) if name == b"location" else value)
                    for name, value in message.get("headers", ())
                ]
            await send(message)

        await self._app(scope, receive, send_relative)


def _relative(location: bytes, scope: Scope) -> bytes:
    """Return an address of this server relative to a request; those of others as they are."""
    if not location.startswith(b"/") or location.startswith((b"//", b"/\\")):
        return location
    return to_root(scope).encode("ascii") + location[1:]


class PublicPath:
    """Middleware that notes below which path clients see the server, and limits cookies to it.

    Args:
        trusted: the addresses of the proxies whose `X-Forwarded-Prefix` is believed.
    """

    def __init__(self, app: ASGIApp, trusted: Container[str]) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request."""
        forwarded = next((value for name, value in scope.get("headers", ()) if name == _HEADER), None)
        if forwarded is not None and (scope.get("client") or ("",))[0] in self._trusted:
            with suppress(ValueError):  # what is no path is not believed
                scope[_KEY] = checked_server_path(forwarded.decode("latin-1"))
        below: str = scope.get(_KEY, "")
        if not below:
            await self._app(scope, receive, send)
            return
        scope["headers"] = [_received(name, value) for name, value in scope["headers"]]

        async def send_limited(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = message.get("headers", ())
                message["headers"] = [_limited(name, value, below.encode("ascii")) for name, value in sent]
            await send(message)

        await self._app(scope, receive, send_limited)


def _received(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a request's header with the server's own names of cookies, without those of servers above it.

    Browsers send the cookie of the longest path first; who reads them takes the last of a name.
    """
    if name != b"cookie":
        return name, value
    host, secure = _HOST_COOKIE.encode(), _SECURE_COOKIE.encode()
    cookies = [cookie.strip() for cookie in value.split(b";")]
    own = [cookie for cookie in cookies if not cookie.startswith(host)]
    first = {cookie.partition(b"=")[0]: cookie for cookie in reversed(own)}.values()
    return name, b"; ".join(host + part[len(secure) :] if part.startswith(secure) else part for part in first)


def _limited(name: bytes, value: bytes, below: bytes) -> tuple[bytes, bytes]:
    """Return a response's header: a cookie for all paths becomes one for those of this server."""
    if name != b"set-cookie":
        return name, value
    limited = _EVERYWHERE.sub(lambda match: match.group(1)[:-1] + below + b"/", value)
    return name, re.sub(b"^" + _HOST_COOKIE.encode(), _SECURE_COOKIE.encode(), limited)
