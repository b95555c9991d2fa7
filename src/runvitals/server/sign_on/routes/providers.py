"""`/organisation/providers`: where users may sign in."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.organisation.routes.changed_settings import PROVIDERS, enforced_by
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheAccess, TheNotices, TheOutsideServices, TheRequester
from runvitals.server.sign_on.providers import MAX_PROVIDERS, shown_providers, stored_providers

router = Router()


class Providers(RequestBody):
    """All providers, in place of those before."""

    providers: list[dict[str, Any]] = Field(
        max_length=MAX_PROVIDERS,
        description="Each with id, label, kind (oidc or github), issuer, client_id and, where it is new, "
        "client_secret; optional: scopes, trust_email, trust_second_factor, auto_create, group_claim, "
        "group_map, admin_group.",
    )


class ProvidersPage(ResponseBody):
    """A page of providers without their secrets, and whether and why they cannot be changed."""

    providers: list[dict[str, Any]]
    total: int
    next: str | None
    editable: bool
    enforced_by: str | None


@router.get("/organisation/providers", needs("org:member_read"), response_model=ProvidersPage)
def providers(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The providers, without their secrets."""
    settings = access.accounts.settings
    rows, by = shown_providers(settings.all().get(PROVIDERS, [])), enforced_by(PROVIDERS, settings)
    return {**page_in_order("providers", rows, page), "editable": by is None, "enforced_by": by}


@router.put("/organisation/providers", needs("org:settings"), response_model=ProvidersPage)
def put_providers(
    body: Providers,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    notices: TheNotices,
) -> dict[str, Any]:
    """Set the providers. A provider whose secret is left out keeps the one that it has."""
    by = enforced_by(PROVIDERS, access.accounts.settings)
    if by is not None:
        raise HTTPException(409, f"the providers cannot be changed here: they are set by {by}")
    before = outside.settings().get(PROVIDERS, [])
    changed = [
        {name: value for name, value in entry.items() if name != "has_secret"} for entry in body.providers
    ]
    try:
        stored = stored_providers(changed, before, outside.box)
        for entry in stored:
            outside.fetcher.check(entry.get("issuer", "https://github.com"))
    except (ValueError, Blocked) as error:
        raise InvalidFields({PROVIDERS: str(error)}) from None
    access.accounts.settings.put(
        {PROVIDERS: stored}, requester.actor, access.clock(), secret=frozenset((PROVIDERS,))
    )
    access.rights_changed()
    notices.to_organisation_administrators(messages.settings_changed(requester.name, [PROVIDERS]))
    rows = shown_providers(stored)
    return {"providers": rows, "total": len(rows), "next": None, "editable": True, "enforced_by": None}
