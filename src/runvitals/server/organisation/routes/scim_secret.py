"""`/organisation/scim-secret`: the secret with which an identity provider provisions users and teams."""

from __future__ import annotations

from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.key_rules import check_session
from runvitals.server.doors.scim.messages import PREFIX
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester

router = Router()


class Provisioning(ResponseBody):
    """Provisioning of users and teams by an identity provider."""

    enabled: bool
    created_ms: int | None
    last_used_ms: int | None
    path: str = Field(description="Where the provider sends its requests on this server.")


class ShownSecret(ResponseBody):
    """A secret, which is shown once."""

    secret: str


@router.get("/organisation/scim-secret", needs("org:settings"))
def scim_state(access: TheAccess) -> Provisioning:
    """Return whether there is a secret, when the provider last used it, and where it sends its requests."""
    secret = access.accounts.scim.secret()
    return Provisioning(
        enabled=secret is not None,
        created_ms=None if secret is None else secret.created_ms,
        last_used_ms=None if secret is None else secret.used_ms,
        path=PREFIX,
    )


@router.post("/organisation/scim-secret", needs("org:settings"), status_code=201)
def create_scim_secret(access: TheAccess, requester: TheRequester) -> ShownSecret:
    """Make a secret, which is shown once; the one before stops working."""
    check_session(requester)
    return ShownSecret(secret=access.accounts.scim.new_secret(requester.actor, access.clock()))


@router.delete("/organisation/scim-secret", needs("org:settings"), status_code=204)
def remove_scim_secret(access: TheAccess, requester: TheRequester) -> None:
    """End provisioning: the secret stops working. Users and teams stay."""
    access.accounts.scim.remove_secret(requester.actor, access.clock())
