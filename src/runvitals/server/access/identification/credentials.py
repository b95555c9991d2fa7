"""Credentials of requests: a key, a guest link or a session cookie, in this order."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final

from starlette.responses import Response

from runvitals.server.access.identification.identity import Credential

LINK_HEADER: Final = "X-Runvitals-Link"
SECURE_COOKIE: Final = "__Host-runvitals"
"""Over TLS: browsers take a cookie of this name only from this host, by TLS and for all paths."""
PLAIN_COOKIE: Final = "runvitals_session"
"""Over HTTP without TLS, for a server on the same machine or in a trusted network."""
MAX_SECRET: Final = 16 * 1024
"""The longest secret that is looked up: keys have about fifty characters, tokens of other services thousands.
"""


def credential_of(headers: Iterable[tuple[bytes, bytes]], secure: bool) -> Credential | None:
    """Return the credential of a request; None for a visitor.

    A request with an `Authorization` header is one of a program, even if it has cookies.

    Args:
        headers: as in ASGI, with lower-case names.
        secure: whether the request came by TLS.

    Example:
        >>> credential_of([(b"authorization", b"Basic YXBpOnJ2dC0x")], secure=False)
        Credential(kind='key', secret='rvt-1')
    """
    cookies = link = b""
    for name, value in headers:
        if name == b"authorization":
            return Credential("key", _key_of(value.decode("latin-1")))
        if name == b"x-runvitals-link":
            link = value
        elif name == b"cookie":
            cookies += value + b";"
    if link:
        return Credential("link", link.decode("latin-1").strip())
    secret = _value(cookies, SECURE_COOKIE if secure else PLAIN_COOKIE) if cookies else ""
    return Credential("session", secret) if secret else None


def set_session_cookie(response: Response, secret: str, secure: bool, max_age_s: int = 30 * 86_400) -> None:
    """Give the browser a new session.

    Args:
        secure: whether the request came by TLS: `request.url.scheme == "https"`.
        max_age_s: when the browser forgets it; the server ends it by its own times.
    """
    # Lax, so that a link in a mail opens signed in. Changes from other sites are rejected by their headers.
    response.set_cookie(
        SECURE_COOKIE if secure else PLAIN_COOKIE,
        secret,
        max_age=max_age_s,
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )


def clear_session_cookie(response: Response, secure: bool) -> None:
    """Make the browser forget its session. End the session itself too: `sessions.end`."""
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def _key_of(authorization: str) -> str:
    """Return the key of an `Authorization` header; empty, and so invalid, if there is none in it."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        decoded = base64.b64decode(value.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return decoded.partition(":")[2]


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """Return the value of a cookie; empty if there is none.

    Takes time proportional to the headers, which may be those of strangers.

    Args:
        headers: as in ASGI, with lower-case names.

    Example:
        >>> cookie_of([(b"cookie", b"a=1; b=2")], "b")
        '2'
    """
    return _value(b";".join(value for key, value in headers if key == b"cookie"), name)


def _value(header: bytes, name: str) -> str:
    for part in header.decode("latin-1").split(";"):
        key, _, value = part.partition("=")
        if key.strip() == name:
            return value.strip().strip('"')
    return ""
