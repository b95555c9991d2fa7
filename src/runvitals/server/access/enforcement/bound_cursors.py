"""Binds the cursors of lists to who got them: a cursor holds values of the last run of a page."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import cached_property
from typing import Final

from starlette.requests import Request

from runvitals.server.access.principals import GuestLink, Operator, Principal, ServiceAccount, User
from runvitals.server.access.requester import requester_of

_SIGNATURE_BYTES: Final = 12
_SIGNATURE_CHARACTERS: Final = 16


class BoundCursors:
    """Signs cursors for who makes a request, and checks the signatures.

    Before there are accounts, cursors stay as they are.

    Args:
        read_key: reads what signs them, once.
    """

    def __init__(self, read_key: Callable[[], bytes]) -> None:
        self._read_key = read_key

    @cached_property
    def _key(self) -> bytes:
        return self._read_key()

    def bind(self, request: Request, cursor: str) -> str:
        """Return the cursor for a response to a request."""
        principal = requester_of(request).principal
        return cursor if isinstance(principal, Operator) else self._signature(principal, cursor) + cursor

    def open(self, request: Request, bound: str) -> str:
        """Return the cursor in one that `bind` returned.

        Raises:
            ValueError: it is not one that this requester got.
        """
        principal = requester_of(request).principal
        if isinstance(principal, Operator):
            return bound
        signature, cursor = bound[:_SIGNATURE_CHARACTERS], bound[_SIGNATURE_CHARACTERS:]
        expected = self._signature(principal, cursor)
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode("ascii")):
            raise ValueError(f"invalid after={bound[:200]!r}; expected the `next` of your previous page")
        return cursor

    def _signature(self, principal: Principal, cursor: str) -> str:
        text = f"{_name(principal)}\0{cursor}".encode("utf-8", "surrogatepass")
        digest = hmac.new(self._key, text, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
        return base64.urlsafe_b64encode(digest).decode("ascii")


def _name(principal: Principal) -> str:
    if isinstance(principal, User):
        return f"user {principal.id}"
    if isinstance(principal, ServiceAccount):
        return f"service account {principal.id}"
    if isinstance(principal, GuestLink):
        return f"link {principal.kind} {principal.id}"
    return "visitor"
