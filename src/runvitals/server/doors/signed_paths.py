"""Addresses that allow one thing for some time, without a key: clients send none to where files are.

An address says who asked for it. Whoever serves it decides again whether they may do what it allows: it ends
with the right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from fastapi import Request

from runvitals.server.access.identification.authentication import WANDB_SIGNED
from runvitals.server.access.identification.identity import CredentialOwner
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester, Via, requester_of
from runvitals.server.http.public_path import base_url
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.service_parameters import access_of
from runvitals.server.services import shared_services_of

T = TypeVar("T", bound=msgspec.Struct)
DOWNLOAD_MS: Final = 3_600_000
RUN_FILE_MS: Final = 3_600_000
UPLOAD_MS: Final = 86_400_000
"""Clients ask for the addresses of thousands of files before they send the first."""
_MAX_TOKEN: Final = 8192


class _Signed(msgspec.Struct, Generic[T], array_like=True):
    """The signed content of an address. `owner`: who asked for it."""

    expires_ms: int
    owner: CredentialOwner
    allowed: T


class AddressInUse(NamedTuple, Generic[T]):
    """The permission that an address carries, and who asked for it, with the rights that they have now."""

    allowed: T
    requester: Requester


class SignedPaths:
    """Makes and reads signed addresses.

    The signature is in the query, which no log has. The key is derived from the server's key file, so that
    addresses stay valid when the server starts again, and all servers of a store read them.

    Args:
        key: 32 secret bytes.
        clock: the time now, ms UTC.

    Example:
        >>> paths = SignedPaths(key, now_ms)
        >>> token = paths.token(owner, FileOfVersion(7, "model.pt"), DOWNLOAD_MS)
        >>> paths.open(token, FileOfVersion)
        (CredentialOwner(kind='user', id=3, key_id=None), FileOfVersion(version_id=7, path='model.pt'))
    """

    def __init__(self, key: bytes, clock: Callable[[], int]) -> None:
        self._key = key
        self._clock = clock

    def token(self, owner: CredentialOwner, allowed: msgspec.Struct, life_ms: int) -> str:
        """Return the text that stands for what the owner asked for."""
        body = msgspec.json.encode(_Signed(self._clock() + life_ms, owner, allowed))
        return _text(body) + "." + _text(self._signature(type(allowed), body))

    def open(self, token: str, kind: type[T]) -> tuple[CredentialOwner, T]:
        """Return who asked for what.

        Raises:
            HttpRejection: 403: the signature is not valid, or the time is over.
        """
        body, _, signature = token.partition(".")
        try:
            if len(token) > _MAX_TOKEN:
                raise ValueError("too long")
            content = _bytes(body)
            if not hmac.compare_digest(_bytes(signature), self._signature(kind, content)):
                raise ValueError("another signature")
            signed = msgspec.json.decode(content, type=_Signed[kind])  # type: ignore[valid-type]
        except (ValueError, binascii.Error, msgspec.MsgspecError):
            raise HttpRejection(403, "this address is not valid") from None
        if signed.expires_ms < self._clock():
            raise HttpRejection(403, "the time of this address is over: ask for a new one")
        return signed.owner, signed.allowed

    def _signature(self, kind: type[msgspec.Struct], body: bytes) -> bytes:
        return hmac.digest(self._key, kind.__name__.encode() + b":" + body, hashlib.sha256)


def signed_address(
    request: Request, path: str, name: str, allowed: msgspec.Struct, life_ms: int, below: str = WANDB_SIGNED
) -> str:
    """Return an address under which the server does what is allowed, as long as the requester may do it.

    Args:
        path: the path below one of `SIGNED_PATHS`: `below`.
        name: the name of the file, for whoever reads the address.
    """
    token = _paths(request).token(CredentialOwner.of(requester_of(request).principal), allowed, life_ms)
    return f"{base_url(request)}{below}{path}/{quote(name)}?{urlencode({'token': token})}"


def address_in_use(request: Request, kind: type[T]) -> AddressInUse[T]:
    """Return the permission in a request's address, and whose it is. Reads the database.

    Raises:
        HttpRejection: 403: its signature is not valid, its time is over, or whoever asked for it has no
            account any more, or revoked the key.
    """
    owner, allowed = _paths(request).open(request.query_params.get("token", ""), kind)
    access = access_of(request)
    identity = access.directory.owner_now(owner)
    if identity is None or (isinstance(identity.principal, Operator) and access.mode() == "accounts"):
        raise HttpRejection(403, "whoever asked for this address may not use it any more")
    visitor = requester_of(request)
    via: Via = "" if owner.kind in ("operator", "visitor") else "key" if owner.key_id else "session"
    requester = replace(
        visitor,
        principal=identity.principal,
        name=identity.name,
        via=via,
        key_public_id=identity.key_public_id,
    )
    return AddressInUse(allowed, requester)


def _paths(request: Request) -> SignedPaths:
    services = shared_services_of(request)
    return SignedPaths(services.account_services.box.derived_key("addresses of files"), services.clock)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
