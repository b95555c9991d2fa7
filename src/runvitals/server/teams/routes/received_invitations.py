"""`/invitations` and `/account/invitations`: look at invitations, accept and decline them."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.principals import Access, User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Account
from runvitals.server.account_services import AccountServices
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.server.teams.routes.inviting import Invitation, InvitationsPage, check_admission, invitation_of
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.store.errors import NoLongerValid


class Token(RequestBody):
    """The secret of an invitation's link."""

    token: str = Field(max_length=256, description="The part of the link after #.")


class Offer(RequestBody):
    """An invitation: of a link, or one from `GET /account/invitations`."""

    token: str | None = Field(None, max_length=256)
    id: int | None = None


router = Router()


@router.post("/invitations/show", needs("public"), with_accounts())
def show(offer: Token, services: TheServices, access: TheAccess, requester: TheRequester) -> Invitation:
    """Return the invitation of a link, for anyone who has it."""
    return invitation_of(_by_token(offer.token, services, access, requester))


@router.get("/account/invitations", needs("account"), response_model=InvitationsPage)
def my_invitations(access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """Pending invitations of the requester: by name, and to addresses that they have verified."""
    user_id = requester.user_id
    rows = [] if user_id is None else access.accounts.invitations.of_user(user_id, access.clock())
    return page_of("invitations", rows, lambda row: row.id, page, invitation_of)


# Also for users without a verified address: the link proves that they have the one that was invited.
@router.post("/invitations/accept", needs("account:read"))
def accept(offer: Offer, services: TheServices, access: TheAccess, requester: TheRequester) -> Invitation:
    """Accept an invitation. The address that it was sent to becomes one of the user's verified addresses."""
    user = _user(access, requester)
    if user.access is Access.NONE:
        raise HTTPException(403, "your account may not join teams; ask an administrator")
    row = _own_invitation(offer, services, access, requester, user)
    if row.team_id is not None and row.invited_by is not None:
        check_admission(access, row.team_id, user.id, row.invited_by)
    accepted = access.accounts.invitations.accept(row, user.id, requester.actor, access.clock())
    access.rights_changed()
    return invitation_of(accepted).model_copy(update={"state": "accepted"})


@router.post("/invitations/decline", needs("account:read"))
def decline(offer: Offer, services: TheServices, access: TheAccess, requester: TheRequester) -> Invitation:
    """Decline an invitation; it can no longer be accepted."""
    row = _own_invitation(offer, services, access, requester, _user(access, requester))
    access.accounts.invitations.decline(row, requester.actor, access.clock())
    return invitation_of(row).model_copy(update={"state": "declined"})


def _user(access: AccessControl, requester: Requester) -> User:
    if not isinstance(requester.principal, User):
        raise HTTPException(403, "only a user can be invited")
    if requester.principal.key is not None:
        account = Account(requester.principal.id)
        access.require(requester, Action.ACCOUNT_UPDATE, account, "your account")
    return requester.principal


def _own_invitation(
    offer: Offer, services: AccountServices, access: AccessControl, requester: Requester, user: User
) -> InvitationRow:
    if (offer.token is None) == (offer.id is None):
        raise InvalidFields({"token": "expected either token or id"})
    if offer.token is not None:
        return _by_token(offer.token, services, access, requester)
    for row in access.accounts.invitations.of_user(user.id, access.clock()):
        if row.id == offer.id:
            return row
    raise NoLongerValid("this invitation was used, has expired or was revoked")


def _by_token(
    token: str, services: AccountServices, access: AccessControl, requester: Requester
) -> InvitationRow:
    return services.of_link(
        requester.ip, lambda: access.accounts.invitations.by_secret(token, access.clock())
    )
