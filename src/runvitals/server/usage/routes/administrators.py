"""`/billing/administrators`: who looks after the billing of the organisation."""

from __future__ import annotations

from typing import Any

from runvitals.server.access.permission import needs
from runvitals.server.accounts.storage.users import ListedUser
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

router = Router()


@router.get("/billing/administrators", dependencies=[needs("billing:read")])
def administrators(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The billing administrators and billing viewers, by name. `PATCH /organisation/members/{name}` with
    `billing_role` changes who they are.
    """
    found = [one for one in access.accounts.users.listed() if one.user.billing_role != "none"]
    return page_of("administrators", found, lambda one: one.user.name, page, _administrator_json)


def _administrator_json(one: ListedUser) -> dict[str, Any]:
    return {
        "name": one.user.name,
        "display_name": one.user.display_name,
        "org_role": one.user.org_role,
        "billing_role": one.user.billing_role,
        "state": one.user.state,
    }
