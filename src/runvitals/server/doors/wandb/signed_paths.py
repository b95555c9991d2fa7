"""Addresses that allow one thing for some time, without a key: clients send none to where files are."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from fastapi import Request

from runvitals.server.access.authentication import SIGNED_PATHS
from runvitals.server.ingest.errors import HttpRejection

T = TypeVar("T", bound=msgspec.Struct)
DOWNLOAD_MS: Final = 3_600_000
UPLOAD_MS: Final = 86_400_000
"""Clients ask for the addresses of thousands of files before they send the first."""
_MAX_TOKEN: Final = 4096


class SignedPaths:
    """Makes and reads signed addresses.

    The signature is in the query, which no log has. The key is derived from the server's key file, so that
    addresses stay valid when the server starts again, and all servers of a store read them.

    Args:
        key: 32 secret bytes.
        clock: the time now, ms UTC.

    Example:
        >>> paths = SignedPaths(key, now_ms)
        >>> address = paths.address(base_url, "artifact-file", "model.pt", Upload(7, digest), UPLOAD_MS)
        >>> paths.read(request, Upload)
        Upload(version_id=7, digest='…')
    """

    def __init__(self, key: bytes, clock: Callable[[], int]) -> None:
        self._key = key
        self._clock = clock

    def address(self, base_url: str, what: str, name: str, allowed: msgspec.Struct, life_ms: int) -> str:
        """An address under which the server does what is allowed.

        Args:
            what: the path below `SIGNED_PATHS`.
            name: the name of the file, for whoever reads the address.
        """
        expires_ms = self._clock() + life_ms
        body = msgspec.json.encode((expires_ms, allowed))
        token = _text(body) + "." + _text(self._signature(type(allowed), body))
        return f"{base_url}{SIGNED_PATHS}{what}/{quote(name)}?{urlencode({'token': token})}"

    def read(self, request: Request, kind: type[T]) -> T:
        """What the address of a request allows.

        Raises:
            HttpRejection: 403: its signature is not valid, or its time is over.
        """
        token = request.query_params.get("token", "")
        body, _, signature = token.partition(".")
        try:
            if len(token) > _MAX_TOKEN:
                raise ValueError("too long")
            content = _bytes(body)
            if not hmac.compare_digest(_bytes(signature), self._signature(kind, content)):
                raise ValueError("another signature")
            expires_ms, allowed = msgspec.json.decode(content, type=tuple[int, kind])  # type: ignore[valid-type]
        except (ValueError, binascii.Error, msgspec.MsgspecError):
            raise HttpRejection(403, "this address is not valid") from None
        if expires_ms < self._clock():
            raise HttpRejection(403, "the time of this address is over: ask for a new one")
        found: T = allowed
        return found

    def _signature(self, kind: type[msgspec.Struct], body: bytes) -> bytes:
        return hmac.digest(self._key, kind.__name__.encode() + b":" + body, hashlib.sha256)


def signed_paths(request: Request) -> SignedPaths:
    """The signed addresses of the server that got a request."""
    state = request.app.state
    return SignedPaths(state.account_services.box.derived_key("addresses of files"), state.access.clock)


def base_url(request: Request) -> str:
    """The address of the server, as the client of a request knows it."""
    return str(request.base_url).rstrip("/")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
