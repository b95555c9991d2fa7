"""A sign-in by a provider that waits for the second factor: a sealed cookie, so that no table is filled.

It is worth nothing without the second factor, in this browser only, and for ten minutes.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass
from typing import Final

from fastapi import HTTPException, Request
from starlette.responses import Response

from runvitals.model.durations import MINUTE_MS
from runvitals.server.accounts.routes.session_cookies import is_secure
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable

_NAME: Final = "rv-second-factor"
_PURPOSE: Final = "sign-in that waits for the second factor"
_LIFE_MS: Final = 10 * MINUTE_MS
_MAX_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A user whom a provider has recognised. `offer`: a login to link once the second factor is right."""

    user_id: int
    provider: str
    next_path: str
    offer: str | None
    expires_ms: int


def remember(
    request: Request,
    response: Response,
    box: SecretBox,
    user_id: int,
    provider: str,
    next_path: str,
    offer: str | None,
    now_ms: int,
) -> None:
    """Note in the browser whom a provider has recognised."""
    pending = PendingSignIn(user_id, provider, next_path, offer, now_ms + _LIFE_MS)
    sealed = box.seal(json.dumps(asdict(pending)).encode(), _PURPOSE)
    response.set_cookie(
        _cookie(request),
        base64.urlsafe_b64encode(sealed).decode("ascii"),
        max_age=_LIFE_MS // 1000,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def forget(request: Request, response: Response) -> None:
    """Remove the note."""
    response.delete_cookie(_cookie(request), path="/", secure=is_secure(request), httponly=True)


def pending_of(request: Request, box: SecretBox, now_ms: int) -> PendingSignIn:
    """Return the sign-in of this browser that waits.

    Raises:
        HTTPException: 410 if there is none, or it was begun too long ago.
    """
    cookie = request.cookies.get(_cookie(request), "")[:_MAX_CHARACTERS]
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode("ascii"))
        pending = PendingSignIn(**json.loads(box.open(sealed, _PURPOSE)))
    except (UnicodeError, binascii.Error, SecretUnreadable):
        pending = None
    if pending is None or pending.expires_ms <= now_ms:
        raise HTTPException(410, "this sign-in was begun too long ago, or in another browser: sign in again")
    return pending


def _cookie(request: Request) -> str:
    return f"__Host-{_NAME}" if is_secure(request) else _NAME
