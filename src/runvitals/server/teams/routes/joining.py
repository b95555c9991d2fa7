"""Joining a team: the teams of one's mail domain, asking a team's administrators, and their answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl, unauthenticated
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Access, Anonymous, User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Account, Organisation
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.mail import messages, team_messages
from runvitals.server.organisation.settings import enforced_switches
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester, TheServices
from runvitals.server.teams.routes.inviting import check_admission, check_role, may_admit
from runvitals.server.teams.routes.parameters import TheTeam
from runvitals.server.teams.storage.join_requests import MAX_MESSAGE, JoinRequestRow
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import LimitReached, NotFound

RequestId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class JoinMessage(RequestBody):
    """A request to join a team."""

    message: str = Field("", max_length=MAX_MESSAGE, description="For the administrators of the team.")


class TeamRequest(RequestBody):
    """A request for a new team."""

    name: str = Field("", max_length=64, description="How the team could be called.")
    message: str = Field("", max_length=MAX_MESSAGE, description="For the administrators.")


class Approval(RequestBody):
    """With a built-in role or a custom one; without either, as a member."""

    role: str = Field(Role.MEMBER.value, min_length=1, max_length=64)


class TeamAsked(ResponseBody):
    """Who was asked for a team."""

    administrators: list[str] = Field(description="The users who were asked.")


class JoinableTeam(ResponseBody):
    """A team that is recommended to people with the requester's mail domain."""

    name: str
    display_name: str
    description: str
    members: int
    join: Literal["ask", "auto"] = Field(
        validation_alias="join_by_domain", description="`auto`: at once, without asking its administrators."
    )


JoinableTeamsPage = page_body("JoinableTeamsPage", "A page of teams.", teams=list[JoinableTeam])


class JoinRequest(ResponseBody):
    """A request to join a team."""

    id: int
    team: str
    team_display_name: str
    user: str
    user_display_name: str
    message: str
    state: Literal["pending", "approved", "rejected", "withdrawn"]
    created_ms: int
    ended_ms: int | None


JoinRequestsPage = page_body(
    "JoinRequestsPage", "A page of requests to join.", join_requests=list[JoinRequest]
)


class WayToJoin(ResponseBody):
    """How a user may join a team whose page they see."""

    how: Literal["ask", "auto", "requested"] = Field(description="`auto`: at once. `requested`: they asked.")
    request: int | None = Field(description="The id of the request.")


class Joined(ResponseBody):
    """The requester is a member of the team now, without a request."""

    team: str
    team_display_name: str
    state: Literal["approved"]


router = Router()


@router.post("/team-requests", needs("account"), status_code=202)
def ask_for_a_team(
    body: TeamRequest, access: TheAccess, requester: TheRequester, services: TheServices
) -> TeamAsked:
    """Ask the administrators of the organisation to create a team: a mail to them, once a day."""
    user = _user(access, requester)
    if access.may(requester, Action.TEAM_CREATE, Organisation()):
        raise HTTPException(409, "you may create teams yourself")
    administrators = services.accounts.users.administrators()
    if not services.mailer.configured:
        names = ", ".join(administrators)
        raise HTTPException(409, f"this server sends no mail; ask an administrator yourself: {names}")
    services.limit("team_request", str(user.id))
    access.accounts.audit.record(access.clock(), requester.actor, "team.ask", target=body.name or None)
    message = team_messages.team_wanted(requester.name, body.name, body.message)
    services.notices().to_organisation_administrators(message)
    return TeamAsked(administrators=administrators)


@router.get("/account/joinable-teams", needs("account"), response_model=JoinableTeamsPage)
def joinable_teams(access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """Teams that are recommended to people with a mail domain of the requester. `join`: how to join them."""
    rows = _recommend(access, requester)
    return page_of("teams", rows, lambda row: row.name, page)


@router.get("/account/join-requests", needs("account"), response_model=JoinRequestsPage)
def my_join_requests(access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The teams that the requester has asked to join and that have not answered."""
    user_id = requester.user_id
    rows = [] if user_id is None else access.accounts.join_requests.of_user(user_id)
    return page_of("join_requests", rows, lambda row: row.id, page)


@router.delete("/account/join-requests/{request}", needs("account"), status_code=204)
def withdraw(request: RequestId, access: TheAccess, requester: TheRequester) -> None:
    """Withdraw one's own request."""
    user = _user(access, requester)
    row = _join_request(access, requester, request)
    if row.user_id != user.id:
        access.hide(requester, f"request {request}")
    access.accounts.join_requests.withdraw(row.id, requester.actor, access.clock())


# Whoever sees the page of a team may ask to join it; a hidden team is hidden here too.
@router.post("/teams/{team}/join-requests", needs("team:profile"), status_code=201)
def ask_to_join(
    team: TheTeam, body: JoinMessage, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> JoinRequest | Joined:
    """Ask the administrators of a team to join it, or join at once where one's mail domain allows it.

    `state` says which: `pending`, or `approved`.
    """
    user = _user(access, requester)
    if user.access is Access.NONE:
        raise HTTPException(403, "your account may not join teams; ask an administrator")
    if not _joins_at_once(access, user.id, team):
        with checking("message"):
            row = _create_request(access, requester, team, user.id, body.message)
        message = team_messages.join_requested(team.name, requester.name, body.message)
        notices.to_team_administrators(team.name, message)
        return JoinRequest.model_validate(row)
    access.accounts.join_requests.join_by_domain(team.name, requester.actor, access.clock())
    access.rights_changed()
    notices.to_team_administrators(team.name, team_messages.joined_by_domain(team.name, requester.name))
    return Joined(team=team.name, team_display_name=team.display_name, state="approved")


@router.get("/teams/{team}/join-requests", needs("member:update_role"), response_model=JoinRequestsPage)
def join_requests(team: TheTeam, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The requests to join a team that wait for an answer."""
    rows = access.accounts.join_requests.of_team(team.id)
    return page_of("join_requests", rows, lambda row: row.id, page)


@router.post("/teams/{team}/join-requests/{request}/approve", needs("member:update_role"))
def approve(
    team: TheTeam,
    request: RequestId,
    approval: Approval,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> JoinRequest:
    """Make the user of a request a member of the team."""
    row = _of_team(access, requester, team, request)
    if row.user_id == requester.user_id:
        raise HTTPException(403, "you cannot approve your own request; another administrator can")
    check_admission(access, team.id, row.user_id, requester.user_id)
    check_role(access, requester, team, approval.role)
    access.accounts.join_requests.approve(row.id, approval.role, requester.actor, access.clock())
    access.rights_changed()
    notices.to_user(row.user_id, messages.added_to_team(team.name, approval.role, requester.name))
    return JoinRequest.model_validate(access.accounts.join_requests.get(row.id))


@router.post("/teams/{team}/join-requests/{request}/reject", needs("member:update_role"))
def reject(
    team: TheTeam, request: RequestId, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> JoinRequest:
    """Turn down a request."""
    row = _of_team(access, requester, team, request)
    access.accounts.join_requests.reject(row.id, requester.actor, access.clock())
    notices.to_user(row.user_id, team_messages.join_rejected(team.name))
    return JoinRequest.model_validate(access.accounts.join_requests.get(row.id))


def join_of(access: AccessControl, requester: Requester, team: TeamRow) -> WayToJoin | None:
    """Return how the requester may join a team; None for members, and for whom no team is open."""
    user = requester.principal
    if not isinstance(user, User) or user.access is Access.NONE or team.id in user.teams:
        return None
    if team.deleted_ms is not None:
        return None
    for row in access.accounts.join_requests.of_user(user.id):
        if row.team_id == team.id:
            return WayToJoin(how="requested", request=row.id)
    return WayToJoin(how="auto" if _joins_at_once(access, user.id, team) else "ask", request=None)


def _joins_at_once(access: AccessControl, user_id: int, team: TeamRow) -> bool:
    """Return whether the mail domain suffices to join a team.

    Not for administrators of the organisation, who can set the domains of a team, where they may not join
    teams by themselves.
    """
    joins = access.accounts.join_requests.joins_at_once(user_id, team)
    return joins and may_admit(access, team.id, access.accounts.users.get(user_id), None)


def _recommend(access: AccessControl, requester: Requester) -> list[TeamRow]:
    user = requester.principal
    if not isinstance(user, User) or user.access is Access.NONE:
        return []
    hidden = enforced_switches(access.accounts.settings.all()).get("hidden")
    rows = access.accounts.join_requests.recommended(user.id)
    return [row for row in rows if not (row.hidden if hidden is None else hidden)]


def _create_request(
    access: AccessControl, requester: Requester, team: TeamRow, user_id: int, message: str
) -> JoinRequestRow:
    try:
        return access.accounts.join_requests.create(
            team.name, user_id, message, requester.actor, access.clock()
        )
    except LimitReached as error:
        raise HTTPException(429, str(error), {"retry-after": "3600"}) from None


def _user(access: AccessControl, requester: Requester) -> User:
    """Return the user who asks: a person, and not by a key that only reads."""
    if isinstance(requester.principal, Anonymous):
        raise unauthenticated()
    if not isinstance(requester.principal, User):
        raise HTTPException(403, "only a user can join a team")
    account = Account(requester.principal.id)
    access.require(requester, Action.ACCOUNT_UPDATE, account, "your account")
    return requester.principal


def _of_team(access: AccessControl, requester: Requester, team: TeamRow, request_id: int) -> JoinRequestRow:
    row = _join_request(access, requester, request_id)
    if row.team_id != team.id:
        access.hide(requester, f"request {request_id}")
    return row


def _join_request(access: AccessControl, requester: Requester, request_id: int) -> JoinRequestRow:
    try:
        return access.accounts.join_requests.get(request_id)
    except NotFound:
        access.hide(requester, f"request {request_id}")
