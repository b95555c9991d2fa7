"""Binds the cursors of lists to who got them: a cursor holds values of the last run of a page."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from runvitals.server.access.principals import Anonymous, GuestLink, Principal, ServiceAccount, User

_SIGNATURE_BYTES: Final = 12
_SIGNATURE_CHARACTERS: Final = 16


class BoundCursors:
    """Signs cursors for a principal, and checks the signatures.

    Args:
        key: signs them.

    Example:
        >>> cursors = BoundCursors(b"secret")
        >>> cursors.opened(User(1), cursors.bound(User(1), "WzFd"))
        'WzFd'
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def bound(self, principal: Principal, cursor: str) -> str:
        """The cursor for a response to this principal."""
        return self._signature(principal, cursor) + cursor

    def opened(self, principal: Principal, bound: str) -> str:
        """The cursor of a request.

        Raises:
            ValueError: it is not one that this principal got.
        """
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
    return "visitor" if isinstance(principal, Anonymous) else "operator"
