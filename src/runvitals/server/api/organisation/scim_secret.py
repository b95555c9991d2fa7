"""`/organisation/scim-secret`: the secret with which an identity provider provisions users and teams."""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.api.accounts.key_rules import check_session

router = APIRouter()


@router.get("/organisation/scim-secret", dependencies=[needs("org:settings")])
def scim_state(access: TheAccess) -> dict[str, bool]:
    """Whether there is a secret."""
    return {"enabled": access.accounts.scim.enabled()}


@router.post("/organisation/scim-secret", status_code=201, dependencies=[needs("org:settings")])
def create_scim_secret(access: TheAccess, requester: TheRequester) -> dict[str, str]:
    """Make a secret, which is shown once; the one before stops working."""
    check_session(requester)
    return {"secret": access.accounts.scim.new_secret(requester.actor, access.clock())}


@router.delete("/organisation/scim-secret", status_code=204, dependencies=[needs("org:settings")])
def remove_scim_secret(access: TheAccess, requester: TheRequester) -> None:
    """End provisioning: the secret stops working. Users and teams stay."""
    access.accounts.scim.remove_secret(requester.actor, access.clock())
