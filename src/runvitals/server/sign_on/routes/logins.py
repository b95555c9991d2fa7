"""`/account/logins`: how the user signs in besides the password; `/auth/sudo/provider`: confirming by it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import answering
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheNotices, TheOutsideServices
from runvitals.server.sign_on.routes.redirects import ProviderAddress, begin

router = Router()

LoginId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class LinkStart(RequestBody):
    """Where a login is linked, and where the page goes then."""

    provider: str = Field(max_length=40)
    next: str = Field("/-/settings/emails", max_length=2000)


class ConfirmationStart(RequestBody):
    """Where the user confirms who they are, and where the page goes then."""

    provider: str = Field(max_length=40)
    next: str = Field("/", max_length=2000)


class LinkedLogin(ResponseBody):
    """A login at a provider that is linked to the account."""

    id: int
    provider: str
    label: str
    address: str | None = Field(validation_alias="address_seen")
    created_ms: int
    last_used_ms: int | None


LoginsPage = page_body("LoginsPage", "A page of logins.", logins=list[LinkedLogin])


@router.get("/account/logins", needs("account:read"), response_model=LoginsPage)
def logins(access: TheAccess, owner: TheOwner, page: ThePage) -> Any:
    """The logins at providers that are linked to the account."""
    return page_in_order("logins", access.accounts.logins.of_user(owner.id), page)


@router.post("/account/logins", needs("account:security"))
async def link(
    body: LinkStart, request: Request, response: Response, outside: TheOutsideServices, owner: SignedInOwner
) -> ProviderAddress:
    """Begin to link a login; the response is the address of the provider."""
    return await begin(
        request, response, outside, body.provider, next_path=body.next, invitation=None, link_user_id=owner.id
    )


@router.post("/auth/sudo/provider", needs("account:read"))
async def confirm_by_provider(
    body: ConfirmationStart,
    request: Request,
    response: Response,
    outside: TheOutsideServices,
    owner: SignedInOwner,
) -> ProviderAddress:
    """Confirm who one is by signing in again at a provider; the response is its address."""
    return await begin(
        request,
        response,
        outside,
        body.provider,
        next_path=body.next,
        invitation=None,
        link_user_id=owner.id,
        confirmed_session_id=owner.session.id,
    )


@router.delete("/account/logins/{login}", needs("account:security"), status_code=204)
def unlink(login: LoginId, access: TheAccess, notices: TheNotices, owner: SignedInOwner) -> None:
    """Unlink a login, unless it is the last way to sign in."""
    accounts, now_ms = access.accounts, access.clock()
    label = next((row.provider for row in accounts.logins.of_user(owner.id) if row.id == login), "")
    with answering(409):
        accounts.logins.unlink(owner.id, login, owner.actor, now_ms)
    notices.to_user(owner.id, messages.login_unlinked(owner.name, label))
