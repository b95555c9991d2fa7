"""API keys as JSON, and the rules for new ones."""

from __future__ import annotations

from typing import Any, Final

from fastapi import HTTPException

from runvitals.accounts.organisation_settings import with_defaults
from runvitals.accounts.principals import Operator
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.store.metadata.accounts.keys import KeyRow

_DAY_MS: Final = 86_400_000


def key_json(access: AccessControl, key: KeyRow) -> dict[str, Any]:
    """A key without its secret."""
    entities = [access.accounts.entity(number) for number in sorted(key.entities)]
    return {
        "id": key.public_id,
        "name": key.name,
        "scope": key.scope,
        "teams": [entity.name for entity in entities if entity is not None],
        "created_ms": key.created_ms,
        "expires_ms": key.expires_ms,
        "last_used_ms": key.last_used_ms,
        "revoked_ms": key.revoked_ms,
    }


def check_session(requester: Requester) -> None:
    """
    Raises:
        HTTPException: 403 for a key: a stolen key must not make others.
    """
    if requester.via != "session" and not isinstance(requester.principal, Operator):
        raise HTTPException(403, "keys are created at the page, by a user who is signed in, not by a key")


def latest_end(access: AccessControl, wanted_ms: int | None) -> int | None:
    """When a new key ends: as wanted, but not later than the organisation allows. None: never."""
    days = with_defaults(access.accounts.settings.all())["key_max_age_days"]
    if days is None:
        return wanted_ms
    latest_ms = access.clock() + int(days) * _DAY_MS
    return latest_ms if wanted_ms is None else min(wanted_ms, latest_ms)
