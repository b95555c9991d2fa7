"""`/organisation/api-keys`: all keys with their owners, never the keys themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.api.accounts.key_rules import key_json
from runvitals.server.api.listing import ThePage, page_of
from runvitals.store.metadata.accounts.keys import KeyRow

router = APIRouter()


@router.get("/organisation/api-keys", dependencies=[needs("org:key_read")])
def keys(
    access: TheAccess,
    page: ThePage,
    revoked: Annotated[bool, Query(description="Also revoked keys.")] = False,
) -> dict[str, Any]:
    """The keys of all users and service accounts, the oldest first."""
    rows = access.accounts.keys.all(revoked=revoked)
    return page_of("api_keys", rows, lambda key: key.id, page, lambda key: _owned(access, key))


@router.delete("/organisation/api-keys/{key}", status_code=204, dependencies=[needs("org:key_revoke")])
def revoke_key(
    key: Annotated[str, Path(description="The shown part of the key.", max_length=64)],
    access: TheAccess,
    requester: TheRequester,
) -> None:
    """Revoke a key of anyone."""
    row = access.accounts.keys.by_public_id(key)
    access.accounts.keys.revoke(row.id, requester.actor, access.clock())
    access.rights_changed()


def _owned(access: AccessControl, key: KeyRow) -> dict[str, Any]:
    if key.user_id is not None:
        owner, kind = access.accounts.users.get(key.user_id).name, "user"
    else:
        account = access.accounts.service_accounts.get(key.service_account_id or 0)
        owner, kind = f"{account.team}/{account.name}" if account.team else account.name, "service_account"
    return {**key_json(access.accounts, key), "owner": owner, "owner_kind": kind}
