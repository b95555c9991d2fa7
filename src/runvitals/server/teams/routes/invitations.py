"""`/teams/{team}/invitations`: invite people to a team, list, send again and revoke invitations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.server.teams.routes.inviting import (
    InvitationResult,
    InvitationResults,
    InvitationsPage,
    Inviter,
    People,
    Place,
    check_role,
    invitation_of,
)
from runvitals.server.teams.routes.parameters import TheTeam, entity_of
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NotFound

ENDED_MS = 30 * DAY_MS
InvitationId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class TeamPeople(People):
    """Who is invited, and their role in the team."""

    role: Role | None = None
    custom_role: str | None = Field(None, max_length=64)


router = Router()


@router.post(
    "/teams/{team}/invitations",
    needs("member:invite"),
    response_model=InvitationResults,
    response_model_exclude_unset=True,
)
def invite(
    team: TheTeam, people: TeamPeople, notices: TheNotices, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Invite up to 50 people by address or user name, or make a link.

    The answer says what became of each. For an address it never says whether someone has an account with it.
    Where the server sends no mail, it has the links to pass on.
    """
    if people.role is not None and people.custom_role is not None:
        raise InvalidFields({"custom_role": "expected either role or custom_role"})
    role = people.custom_role or (people.role or Role.MEMBER).value
    check_role(access, requester, team, role)
    inviter = Inviter(access, requester, notices)
    return {"results": inviter.invite(people, Place(team, entity_of(access, team), role))}


@router.get("/teams/{team}/invitations", needs("team:read_settings"), response_model=InvitationsPage)
def invitations(team: TheTeam, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The pending invitations of a team, and those that ended within 30 days."""
    now_ms = access.clock()
    access.accounts.invitations.expire(now_ms)
    rows = access.accounts.invitations.all(team.name, pending=False, since_ms=now_ms - ENDED_MS)
    may_see_addresses = access.may(requester, Action.MEMBER_READ_EMAIL, entity_of(access, team))
    return page_of(
        "invitations",
        rows,
        lambda row: row.id,
        page,
        lambda row: invitation_of(row, address=may_see_addresses),
    )


@router.post(
    "/teams/{team}/invitations/{invitation}/resend",
    needs("member:invite"),
    response_model=InvitationResult,
    response_model_exclude_unset=True,
)
def resend(
    team: TheTeam, invitation: InvitationId, notices: TheNotices, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Send a pending invitation again, with a new link; the old one stops working."""
    row = _own_or_managed(access, requester, team, invitation)
    return Inviter(access, requester, notices).resend(row)


@router.delete("/teams/{team}/invitations/{invitation}", needs("member:invite"), status_code=204)
def revoke(team: TheTeam, invitation: InvitationId, access: TheAccess, requester: TheRequester) -> None:
    """End a pending invitation."""
    row = _own_or_managed(access, requester, team, invitation)
    access.accounts.invitations.revoke(row.id, requester.actor, access.clock())


def _own_or_managed(
    access: AccessControl, requester: Requester, team: TeamRow, invitation_id: int
) -> InvitationRow:
    """Return an invitation of this team that the requester sent, or may see because they manage the team."""
    what = f"invitation {invitation_id}"
    try:
        row = access.accounts.invitations.get(invitation_id)
    except NotFound:
        access.hide(requester, what)
    own = row.invited_by is not None and row.invited_by == requester.user_id
    manages = access.may(requester, Action.TEAM_READ_SETTINGS, entity_of(access, team))
    if row.team_id != team.id or not (own or manages):
        access.hide(requester, what)
    check_role(access, requester, team, row.custom_role or row.role)
    return row
