"""`/organisation/api-keys`: all keys with their owners, never the keys themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Query

from runvitals.server.access.permission import needs
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.routes.key_rules import KeySchema, key_schemas
from runvitals.server.accounts.storage.keys import KeyRow
from runvitals.server.http.bodies import page_body
from runvitals.server.http.listing import ThePage, part_of
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester

router = Router()


class OwnedKey(KeySchema):
    """A key with its owner. Of a team's service account, the name begins with the team."""

    owner: str
    owner_kind: Literal["user", "service_account"]


OwnedKeysPage = page_body("OwnedKeysPage", "A page of keys.", api_keys=list[OwnedKey])


@router.get("/organisation/api-keys", needs("org:key_read"), response_model=OwnedKeysPage)
def keys(
    access: TheAccess,
    page: ThePage,
    revoked: Annotated[bool, Query(description="Also revoked keys.")] = False,
) -> dict[str, Any]:
    """The keys of all users and service accounts, the oldest first."""
    rows = access.accounts.keys.all(revoked=revoked)
    part, cursor = part_of(rows, lambda key: key.id, page)
    return {"api_keys": _with_owners(access.accounts, part), "total": len(rows), "next": cursor}


@router.delete("/organisation/api-keys/{key}", needs("org:key_revoke"), status_code=204)
def revoke_key(
    key: Annotated[str, Path(description="The shown part of the key.", max_length=64)],
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> None:
    """Revoke a key of anyone. A user gets mail about it."""
    row = access.accounts.keys.by_public_id(key)
    access.accounts.keys.revoke(row.id, requester.actor, access.clock())
    access.rights_changed()
    if row.user_id is not None and row.revoked_ms is None:
        owner = access.accounts.users.get(row.user_id).name
        notices.to_user(row.user_id, messages.key_revoked(owner, row.name, row.public_id))


def _with_owners(accounts: AccountStore, keys: Sequence[KeyRow]) -> list[OwnedKey]:
    users = {row.user.id: row.user.name for row in accounts.users.listed()}
    services = {
        row.id: f"{row.team}/{row.name}" if row.team else row.name for row in accounts.service_accounts.all()
    }
    return [
        OwnedKey(**schema.model_dump(), owner=users[key.user_id], owner_kind="user")
        if key.user_id is not None
        else OwnedKey(
            **schema.model_dump(),
            owner=services[key.service_account_id or 0],
            owner_kind="service_account",
        )
        for key, schema in zip(keys, key_schemas(accounts, keys), strict=True)
    ]
