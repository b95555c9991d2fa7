"""Browsers that have signed in before, recognised by a cookie.

Guesses from elsewhere slow down all strangers, and so the cookie lets the user's own browsers past them. It
is encrypted by the server's key file, so it says nothing and cannot be made up. It gives no access.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import Final

from runvitals.server.database.secret_box import SecretBox, SecretUnreadable

_PURPOSE: Final = "known browser"
_ID_BYTES: Final = 12
_MAX_CHARACTERS: Final = 256


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """A browser in which this user has signed in."""

    user_id: int
    id: str


def new_known_browser(box: SecretBox, user_id: int) -> str:
    """Return the value of the cookie for a browser in which a user has just signed in."""
    text = f"{user_id}:{secrets.token_hex(_ID_BYTES)}"
    return base64.urlsafe_b64encode(box.seal(text.encode(), _PURPOSE)).decode("ascii")


def known_browser(box: SecretBox, cookie: str | None) -> KnownBrowser | None:
    """Return the browser of a cookie; None if there is no cookie, or this server did not make it."""
    if cookie is None or len(cookie) > _MAX_CHARACTERS:
        return None
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode("ascii"))
        user_id, _, name = box.open(sealed, _PURPOSE).decode().partition(":")
        return KnownBrowser(int(user_id), name)
    except (UnicodeError, binascii.Error, SecretUnreadable, ValueError):
        return None
