"""API keys in responses, and the rules for new ones: those of users and those of service accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from fastapi import HTTPException
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import CommandLine, Operator
from runvitals.server.access.requester import Requester
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.keys import KeyRow
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields
from runvitals.server.organisation.settings import with_defaults

KeyScopeName = Literal["ingest", "read", "write", "full"]


class KeySchema(ResponseBody):
    """A key without its secret."""

    id: str = Field(description="The shown part of the key.")
    name: str
    scope: KeyScopeName
    teams: list[str] = Field(description="Those that it works in; empty: all.")
    created_ms: int
    expires_ms: int | None
    last_used_ms: int | None
    revoked_ms: int | None


class ShownKey(KeySchema):
    """A key with its secret, which is shown once."""

    key: str


KeysPage = page_body("KeysPage", "A page of keys.", api_keys=list[KeySchema])


def key_schemas(accounts: AccountStore, keys: Sequence[KeyRow]) -> list[KeySchema]:
    """Return keys without their secrets."""
    names = accounts.entity_names({entity_id for key in keys for entity_id in key.entities})
    return [
        KeySchema(
            id=key.public_id,
            name=key.name,
            scope=cast(KeyScopeName, key.scope),
            teams=[names[entity_id] for entity_id in sorted(key.entities) if entity_id in names],
            created_ms=key.created_ms,
            expires_ms=key.expires_ms,
            last_used_ms=key.last_used_ms,
            revoked_ms=key.revoked_ms,
        )
        for key in keys
    ]


def key_schema(accounts: AccountStore, key: KeyRow) -> KeySchema:
    """Return a key without its secret."""
    return key_schemas(accounts, [key])[0]


def shown_key(accounts: AccountStore, secret: str, key: KeyRow) -> ShownKey:
    """Return a new key with its secret."""
    return ShownKey(**key_schema(accounts, key).model_dump(), key=secret)


def check_session(requester: Requester) -> None:
    """Raise 403 for a request by key: a stolen key must not make others."""
    if requester.via != "session" and not isinstance(requester.principal, (CommandLine, Operator)):
        raise HTTPException(403, "keys are created at the page, by a user who is signed in, not by a key")


def expiry_ms(access: AccessControl, requested_ms: int | None) -> int | None:
    """Return when a new key expires: as requested, else when the organisation says. None: never.

    Raises:
        InvalidFields: it would have expired already, or later than the organisation allows.
    """
    now_ms = access.clock()
    if requested_ms is not None and requested_ms <= now_ms:
        raise InvalidFields({"expires_ms": "the key would have expired already"})
    days = with_defaults(access.accounts.settings.all())["key_max_age_days"]
    if days is None:
        return requested_ms
    latest_ms = now_ms + int(days) * DAY_MS
    if requested_ms is not None and requested_ms > latest_ms:
        raise InvalidFields({"expires_ms": f"the organisation lets keys live for at most {days} days"})
    return latest_ms if requested_ms is None else requested_ms
