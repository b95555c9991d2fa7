"""`/account/api-keys`: the user's API keys. A key is shown once, and made by a session only."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Query
from fastapi.responses import Response
from pydantic import Field

from runvitals.model.durations import HOUR_MS
from runvitals.server.access.actions import AUTHENTICATED
from runvitals.server.access.control import AccessControl, unauthenticated
from runvitals.server.access.permission import needs
from runvitals.server.account_services import AccountServices
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.routes.key_rules import (
    KeySchema,
    KeyScopeName,
    KeysPage,
    ShownKey,
    expiry_ms,
    key_schema,
    key_schemas,
    shown_key,
)
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner, TheOwner
from runvitals.server.accounts.storage.keys import MAX_KEYS, KeyRow
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.store.errors import NotFound

router = Router()


class NewKey(RequestBody):
    """A key of a user, to be created."""

    name: str = Field(min_length=1, max_length=64)
    scope: KeyScopeName = "write"
    teams: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, max_length=50, description="Names of the only teams that the key works in; none: all."
    )
    expires_ms: int | None = Field(None, gt=0, lt=2**53)


class Rotation(RequestBody):
    """How a key is replaced."""

    overlap_h: float = Field(24, ge=0, le=168, description="How long the old key still works.")


class KeyChanges(RequestBody):
    """A new name for a key."""

    name: str = Field(min_length=1, max_length=64)


class RevokedKeys(ResponseBody):
    """How many keys were revoked."""

    revoked: int


@router.get("/account/api-keys", needs("account:read"), response_model=KeysPage)
def keys(access: TheAccess, owner: TheOwner, page: ThePage) -> Any:
    """The keys that have not been revoked."""
    rows = key_schemas(access.accounts, access.accounts.keys.all(user_id=owner.id))
    return page_in_order("api_keys", rows, page)


@router.post("/account/api-keys", needs("account:keys"), status_code=201)
def create_key(
    body: NewKey,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
    response: Response,
) -> ShownKey:
    """Create a key. It is shown in this response only."""
    return _with_headers(response, create_key_of(owner.id, body, access, services, owner.actor))


def create_key_of(
    user_id: int, body: NewKey, access: AccessControl, services: AccountServices, by: Actor
) -> ShownKey:
    """Create a key of a user. `by`: the user.

    Raises:
        HTTPException: 403 if only administrators make keys, 409 if there are too many, 422.
    """
    accounts, now_ms = access.accounts, access.clock()
    settings = services.settings()
    if settings["api_key_creation"] == "admins" and accounts.users.get(user_id).org_role != "admin":
        raise HTTPException(403, "the organisation lets only administrators create keys")
    expires_ms = expiry_ms(access, body.expires_ms)
    entities = _entities(accounts, user_id, body.teams, now_ms)
    if len([key for key in accounts.keys.all(user_id=user_id) if _lives(key, now_ms)]) >= MAX_KEYS:
        raise HTTPException(409, f"you have {MAX_KEYS} keys, which is the most that are allowed: revoke one")
    try:
        secret, key = accounts.keys.create(
            body.name,
            by,
            now_ms,
            user_id=user_id,
            scope=body.scope,
            entities=entities,
            expires_ms=expires_ms,
        )
    except ValueError as error:
        raise InvalidFields({"name": str(error)}) from None
    services.notices().to_user(user_id, messages.key_created(by.name, key.name, key.public_id))
    return shown_key(accounts, secret, key)


# A key may replace itself, for programs that do so on a schedule.
@router.post("/account/api-keys/current/rotate", needs(AUTHENTICATED), status_code=201)
def rotate_current(
    body: Rotation, requester: TheRequester, access: TheAccess, response: Response
) -> ShownKey:
    """Replace the key that this request came with."""
    if requester.key_public_id is None:
        raise unauthenticated()
    return _with_headers(response, _rotate(access, requester.key_public_id, body, requester.actor))


@router.post("/account/api-keys/{key}/rotate", needs("account:keys"), status_code=201)
def rotate(
    key: str,
    body: Rotation,
    access: TheAccess,
    owner: SignedInOwner,
    response: Response,
) -> ShownKey:
    """Replace a key by one of the same name and rights. The old one works until the overlap is over."""
    _own(access.accounts, owner, key)
    return _with_headers(response, _rotate(access, key, body, owner.actor))


@router.patch("/account/api-keys/{key}", needs("account:keys"))
def rename(
    key: str,
    body: KeyChanges,
    access: TheAccess,
    owner: SignedInOwner,
) -> KeySchema:
    """Rename a key."""
    row = _own(access.accounts, owner, key)
    try:
        renamed = access.accounts.keys.rename(row.id, body.name, owner.actor, access.clock())
    except ValueError as error:
        raise InvalidFields({"name": str(error)}) from None
    return key_schema(access.accounts, renamed)


@router.delete("/account/api-keys/{key}", needs("account:keys"), status_code=204)
def revoke(
    key: str,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> None:
    """Revoke a key: it stops working within 5 seconds."""
    _revoke(access, services, owner, [_own(access.accounts, owner, key)])


@router.delete("/account/api-keys", needs("account:keys"))
def revoke_several(
    ids: Annotated[str, Query(max_length=1000, description="Ids of keys, separated by commas.")],
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> RevokedKeys:
    """Revoke several keys; none if one of them does not exist."""
    rows = [_own(access.accounts, owner, key) for key in dict.fromkeys(ids.split(","))]
    _revoke(access, services, owner, rows)
    return RevokedKeys(revoked=len(rows))


def _entities(accounts: AccountStore, user_id: int, teams: list[str] | None, now_ms: int) -> list[int]:
    if not teams:
        return []
    user = accounts.users.get(user_id)
    ids = {user.name: user.entity_id}
    ids |= {team.name: team.id for team, _, _ in accounts.teams.of_user(user_id, now_ms)}
    unknown = {
        f"teams[{number}]": f"you are in no team {name!r}"
        for number, name in enumerate(teams)
        if name.lower() not in ids
    }
    if unknown:
        raise InvalidFields(unknown)
    return [ids[name.lower()] for name in teams]


def _lives(key: KeyRow, now_ms: int) -> bool:
    return key.expires_ms is None or key.expires_ms > now_ms


def _own(accounts: AccountStore, owner: Owner, public_id: str) -> KeyRow:
    try:
        key = accounts.keys.by_public_id(public_id) if public_id.isalnum() else None
    except NotFound:
        key = None
    if key is None or key.user_id != owner.id:
        raise HTTPException(404, f"there is no key {public_id[:20]!r}")
    return key


def _rotate(access: AccessControl, public_id: str, body: Rotation, by: Actor) -> ShownKey:
    accounts = access.accounts
    with answering(409, NotFound):
        old = accounts.keys.by_public_id(public_id)
        secret, key = accounts.keys.rotate(old.id, by, access.clock(), round(body.overlap_h * HOUR_MS))
    access.rights_changed()
    return shown_key(accounts, secret, key)


def _with_headers(response: Response, key: ShownKey) -> ShownKey:
    """Return the key, and let no cache keep it."""
    response.headers["cache-control"] = "no-store"
    response.headers["location"] = f"/api/v1/account/api-keys/{key.id}"
    return key


def _revoke(access: AccessControl, services: AccountServices, owner: Owner, keys: list[KeyRow]) -> None:
    now_ms = access.clock()

    def revoke_all() -> None:
        for key in keys:
            access.accounts.keys.revoke(key.id, owner.actor, now_ms)

    access.accounts.in_one_transaction(revoke_all)
    access.rights_changed()
    for key in keys:
        services.notices().to_user(owner.id, messages.key_revoked(owner.name, key.name, key.public_id))
