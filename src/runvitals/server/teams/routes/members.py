"""`/teams/{team}/members`: who is in a team, their roles, removing and leaving."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

from fastapi import HTTPException, Query, Response
from pydantic import ConfigDict, Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Member
from runvitals.server.accounts.routes.account_schema import AccessLevel
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import ThePage, sorted_page
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.server.teams.routes.parameters import TEAM_ACTIONS, MemberName, TheTeam, entity_of
from runvitals.server.teams.storage.members import MemberRow
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NotFound

_CSV_COLUMNS = (
    "user_name",
    "display_name",
    "email",
    "role",
    "custom_role",
    "access",
    "joined",
    "last_active",
)
"""Named as those of the organisation's members."""
_ROLES: Final = tuple(Role)
"""From the one that may least."""
Order = Literal["name", "role", "last_active", "joined"]


class TeamMemberChanges(RequestBody):
    """Either a built-in role or a custom one, and when the membership ends."""

    role: Role | None = None
    custom_role: str | None = Field(None, max_length=64)
    expires_ms: int | None = Field(None, ge=0, le=2**53, description="ms UTC; null: never.")


class MemberSchema(ResponseBody):
    """A member of a team."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    name: str
    display_name: str
    role: Role
    custom_role: str | None
    access: AccessLevel
    created_ms: int
    last_seen_ms: int | None
    expires_ms: int | None = Field(description="When the membership ends.")
    added_by: str | None
    email: str | None = Field(default=None, description="For those who may see it.")
    picture: str | None = Field(default=None, description="The digest of the picture; in lists.")


class MembersPage(ResponseBody):
    """A page of members, and what the requester may do with them."""

    members: list[MemberSchema]
    total: int
    next: str | None
    may: list[str]


router = Router()


@router.get(
    "/teams/{team}/members", needs("team:read"), response_model=MembersPage, response_model_exclude_unset=True
)
def team_members(
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    role: Annotated[Role | None, Query(description="Only with this role.")] = None,
    text: Annotated[str, Query(description="Part of the name or display name.", max_length=100)] = "",
    sort: Order = "name",
    descending: bool = False,
    format: Annotated[Literal["json", "csv"], Query(description="csv: all of them.")] = "json",
) -> dict[str, Any] | Response:
    """The members of a team. Only who may manage members sees e-mail addresses."""
    part = text.casefold()
    rows = [
        row
        for row in access.accounts.members.of_team(team.name)
        if (role is None or row.role == role.value)
        and (part in row.name or part in row.display_name.casefold())
    ]
    emails = _sees_emails(access, requester, team)
    if format == "csv":
        read_email, entity = Action.MEMBER_READ_EMAIL, entity_of(access, team)
        access.require(requester, read_email, entity, f"team {team.name!r}", changes=False)
        return csv_response(_CSV_COLUMNS, [_to_csv(_to_schema(row, emails)) for row in rows])
    pictures = access.accounts.pictures.digests_of_users(row.user_id for row in rows)

    def with_picture(row: MemberRow) -> MemberSchema:
        member = _to_schema(row, emails)
        member.picture = pictures.get(row.user_id)
        return member

    listed = sorted_page("members", rows, lambda row: _sort_key(row, sort), page, with_picture, descending)
    return {**listed, "may": access.may_list(requester, entity_of(access, team), TEAM_ACTIONS)}


@router.patch(
    "/teams/{team}/members/{member}", needs("member:update_role"), response_model_exclude_unset=True
)
def change_member(
    team: TheTeam,
    member: MemberName,
    changes: TeamMemberChanges,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> MemberSchema:
    """Give a member another role, or a time when the membership ends."""
    fields = changes.model_dump(exclude_unset=True, mode="json")
    if "role" in fields and "custom_role" in fields:
        raise InvalidFields({"custom_role": "expected either role or custom_role"})
    row = _existing(access, requester, team, member)
    role = fields.get("role") or fields.get("custom_role")
    if "custom_role" in fields and role in {built_in.value for built_in in Role}:
        raise InvalidFields({"custom_role": f"{role!r} is not a custom role"})
    members, by, now_ms = access.accounts.members, requester.actor, access.clock()

    def change() -> MemberRow:
        if role is not None:
            members.set_role(team.name, member, role, by, now_ms)
        if "expires_ms" in fields:
            members.set_end(team.name, member, fields["expires_ms"], by, now_ms)
        return members.get(team.name, member)

    try:
        with checking("expires_ms"):
            changed = access.accounts.in_one_transaction(change)
    except NotFound as error:
        raise InvalidFields({"custom_role": str(error)}) from None
    access.rights_changed()
    if role is not None:
        notices.to_user(row.user_id, messages.team_role_changed(team.name, role, requester.mail_name))
    return _to_schema(changed, emails=True)


@router.delete("/teams/{team}/members/{member}", needs("team:read"), status_code=204)
def remove_member(
    team: TheTeam, member: MemberName, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> None:
    """Remove a member, or leave the team. Their runs stay in the team."""
    entity = entity_of(access, team)
    leaving = isinstance(requester.principal, User) and member == requester.name
    if leaving:
        access.require(requester, Action.TEAM_LEAVE, entity, f"team {team.name!r}")
        access.accounts.members.remove(team.name, member, requester.actor, access.clock())
    else:
        access.require(requester, Action.MEMBER_REMOVE, entity, f"team {team.name!r}")
        row = _existing(access, requester, team, member)
        reached = Member(entity, Role(row.role), row.custom_role is not None)
        access.require(requester, Action.MEMBER_REMOVE, reached, f"member {member!r}")
        access.accounts.members.remove(team.name, member, requester.actor, access.clock())
        notices.to_user(row.user_id, messages.removed_from_team(team.name, requester.mail_name))
    access.rights_changed()


@router.post(
    "/teams/{team}/join", needs("team:join_as_admin"), status_code=201, response_model_exclude_unset=True
)
def join_as_administrator(
    team: TheTeam, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> MemberSchema:
    """Join a team as its administrator: for administrators of the organisation, while it lets them."""
    if not isinstance(requester.principal, User):
        raise HTTPException(403, "only a user can join a team")
    access.accounts.members.add(
        team.name,
        requester.name,
        Role.ADMIN.value,
        requester.actor,
        access.clock(),
        action="team.admin_joined",
    )
    notices.to_team_administrators(team.name, messages.administrator_joined(team.name, requester.name))
    access.rights_changed()
    return _to_schema(access.accounts.members.get(team.name, requester.name), emails=True)


def _sees_emails(access: AccessControl, requester: Requester, team: TeamRow) -> bool:
    entity = entity_of(access, team)
    if access.may(requester, Action.MEMBER_READ_EMAIL, entity):
        return True
    members_see: bool = with_defaults(access.accounts.settings.all())["members_see_emails"]
    return members_see and access.may(requester, Action.TEAM_READ, entity)


def _existing(access: AccessControl, requester: Requester, team: TeamRow, name: str) -> MemberRow:
    try:
        return access.accounts.members.get(team.name, name)
    except NotFound:
        access.hide(requester, f"member {name!r}")


def _sort_key(row: MemberRow, order: Order) -> str:
    """Return where a member stands in an order; members that are equal in it stand by name."""
    sort_keys = {
        "name": "",
        "role": f"{_ROLES.index(Role(row.role))} {row.custom_role or ''} ",
        "last_active": f"{row.last_seen_ms or 0:020} ",
        "joined": f"{row.created_ms:020} ",
    }
    return sort_keys[order] + row.name


def _to_csv(member: MemberSchema) -> dict[str, Any]:
    columns = {"user_name": member.name, "joined": member.created_ms, "last_active": member.last_seen_ms}
    return {**member.model_dump(mode="json"), **columns}


def _to_schema(row: MemberRow, emails: bool) -> MemberSchema:
    """Return a member without a picture. `emails`: whether the address is shown."""
    member = MemberSchema(
        name=row.name,
        display_name=row.display_name,
        role=Role(row.role),
        custom_role=row.custom_role,
        access=cast(AccessLevel, row.access),
        created_ms=row.created_ms,
        last_seen_ms=row.last_seen_ms,
        expires_ms=row.expires_ms,
        added_by=row.added_by,
    )
    if emails:
        member.email = row.address
    return member
