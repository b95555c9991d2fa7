"""What a server answers before its first administrator exists: only what is about runs."""

from __future__ import annotations

from typing import Final

from fastapi import HTTPException

from runvitals.server.access.actions import OPERATOR_ACTIONS
from runvitals.server.access.permission import AUTHENTICATED, FILTERED, NO_ADMINISTRATOR

_ALLOWED: Final = frozenset((AUTHENTICATED, *(action.value for action in OPERATOR_ACTIONS)))


def check_before_accounts(permission: str, or_else: str | None) -> None:
    """Check that a route which needs this permission, or else another one, is about runs.

    Raises:
        HTTPException: 403.
    """
    for needed in (permission, or_else):
        if needed is not None and needed.removeprefix(FILTERED) not in _ALLOWED:
            raise HTTPException(403, NO_ADMINISTRATOR)
