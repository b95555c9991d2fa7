"""`/organisation/invitations`: invite people to the organisation, without a team."""

from __future__ import annotations

from typing import Any, Literal

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.server.teams.routes.invitations import ENDED_MS, InvitationId
from runvitals.server.teams.routes.inviting import (
    InvitationResult,
    InvitationResults,
    InvitationsPage,
    Inviter,
    People,
    Place,
    invitation_of,
)
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.store.errors import NotFound


class OrganisationPeople(People):
    """Who is invited, and their role in the organisation."""

    org_role: Literal["member", "admin"] = "member"


router = Router()


@router.post(
    "/organisation/invitations",
    needs("org:invite"),
    response_model=InvitationResults,
    response_model_exclude_unset=True,
)
def invite(
    people: OrganisationPeople, notices: TheNotices, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Invite up to 50 people by address. Only administrators invite administrators."""
    if people.org_role == "admin":
        access.require(requester, Action.ORG_MEMBER_UPDATE, Organisation(), "the organisation")
    target = Place(None, None, "member", people.org_role)
    return {"results": Inviter(access, requester, notices).invite(people, target)}


@router.get("/organisation/invitations", needs("org:member_read"), response_model=InvitationsPage)
def invitations(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The pending invitations to the organisation, and those that ended within 30 days."""
    now_ms = access.clock()
    access.accounts.invitations.expire(now_ms)
    rows = access.accounts.invitations.all(pending=False, since_ms=now_ms - ENDED_MS, organisation=True)
    return page_of("invitations", rows, lambda row: row.id, page, invitation_of)


@router.post(
    "/organisation/invitations/{invitation}/resend",
    needs("org:invite"),
    response_model=InvitationResult,
    response_model_exclude_unset=True,
)
def resend(
    invitation: InvitationId, notices: TheNotices, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Send a pending invitation again, with a new link; the old one stops working."""
    row = _own_or_managed(access, requester, invitation)
    if row.org_role == "admin":
        access.require(requester, Action.ORG_MEMBER_UPDATE, Organisation(), "the organisation")
    return Inviter(access, requester, notices).resend(row)


@router.delete("/organisation/invitations/{invitation}", needs("org:invite"), status_code=204)
def revoke(invitation: InvitationId, access: TheAccess, requester: TheRequester) -> None:
    """End a pending invitation."""
    row = _own_or_managed(access, requester, invitation)
    access.accounts.invitations.revoke(row.id, requester.actor, access.clock())


def _own_or_managed(access: AccessControl, requester: Requester, invitation_id: int) -> InvitationRow:
    what = f"invitation {invitation_id}"
    try:
        row = access.accounts.invitations.get(invitation_id)
    except NotFound:
        access.hide(requester, what)
    own = row.invited_by is not None and row.invited_by == requester.user_id
    manages = access.may(requester, Action.ORG_MEMBER_READ, Organisation())
    if row.team_id is not None or not (own or manages):
        access.hide(requester, what)
    return row
