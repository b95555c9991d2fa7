"""`/organisation/members`: all users, their roles in the organisation, access and state; their names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query, Response
from pydantic import ConfigDict, Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import CommandLine
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.accounts.routes.account_schema import AccessLevel, BillingRole, OrganisationRole
from runvitals.server.accounts.storage.users import ListedUser, UserRow
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.listing import ThePage, sorted_page
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester

CSV_COLUMNS = ("user_name", "email", "role", "access", "teams", "state", "last_active")
_INACTIVE_MS = 182 * DAY_MS
_OWN = ("org_role", "access", "state")
UserName = Annotated[str, Path(max_length=64)]
Order = Literal["name", "org_role", "access", "billing_role", "last_active"]


class MemberChanges(RequestBody):
    """Fields that are left out do not change."""

    org_role: OrganisationRole | None = None
    access: AccessLevel | None = None
    billing_role: BillingRole | None = None
    state: Literal["active", "suspended"] | None = None


class OrgMemberSchema(ResponseBody):
    """A user as administrators see them."""

    name: str
    display_name: str
    email: str | None
    org_role: OrganisationRole
    access: AccessLevel
    billing_role: BillingRole
    state: str = Field(description="`inactive`: not seen for half a year.")
    teams: list[str]
    login_methods: list[str]
    last_seen_ms: int | None
    created_ms: int
    delete_after_ms: int | None


class OrgMembersPage(ResponseBody):
    """A page of users, and what the requester may do with them."""

    members: list[OrgMemberSchema]
    total: int
    next: str | None
    may: list[str]


class DeletedMember(ResponseBody):
    """The teams that the deletion of a user left without an administrator."""

    teams_without_administrator: list[str]


class ResetLink(ResponseBody):
    """A link for a new password. `url`: to pass on, where the server sends no mail."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    sent: bool
    url: str | None = None


class ReleasedName(ResponseBody):
    """A name that may be given again."""

    name: str
    released: bool


router = Router()


@router.get("/organisation/members", needs("org:member_read"), response_model=OrgMembersPage)
def members(
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    text: Annotated[str, Query(description="Part of name or address.", max_length=100)] = "",
    org_role: OrganisationRole | None = None,
    member_access: Annotated[AccessLevel | None, Query(alias="access")] = None,
    state: Literal["unverified", "active", "inactive", "suspended"] | None = None,
    team: Annotated[str | None, Query(max_length=64)] = None,
    sort: Order = "name",
    descending: bool = False,
    format: Annotated[Literal["json", "csv"], Query(description="csv: all of them.")] = "json",
) -> dict[str, Any] | Response:
    """The users who fit all conditions. `inactive`: not seen for half a year."""
    conditions = {"org_role": org_role, "access": member_access, "state": state}
    members = [_to_schema(row, access.clock()) for row in access.accounts.users.listed()]
    members = [
        member
        for member in members
        if all(value is None or getattr(member, name) == value for name, value in conditions.items())
        and (team is None or team in member.teams)
        and _contains(member, text.casefold())
    ]
    if format == "csv":
        return csv_response(CSV_COLUMNS, map(_to_csv, members))
    listed = sorted_page(
        "members", members, lambda member: _sort_key(member, sort), page, descending=descending
    )
    may = frozenset((Action.ORG_MEMBER_UPDATE, Action.ORG_INVITE, Action.BILLING_ASSIGN))
    return {**listed, "may": access.may_list(requester, Organisation(), may)}


@router.patch("/organisation/members/{name}", needs("org:member_update"))
def change_member(
    name: UserName,
    changes: MemberChanges,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> OrgMemberSchema:
    """Change a user's role in the organisation, access, billing role or state."""
    user = access.accounts.users.by_name(name)
    fields = changes.model_dump(exclude_none=True)
    own = [field for field in _OWN if field in fields and user.id == requester.user_id]
    if own:
        raise HTTPException(409, f"you cannot change your own {own[0]}; ask another administrator")
    if "billing_role" in fields:
        access.require(requester, Action.BILLING_ASSIGN, Organisation(), "the organisation")
    now_ms = access.clock()

    def change() -> UserRow:
        rest = dict(fields)
        if rest.get("state") == "active" and user.state == "unverified":
            _verify(access, requester, user)
            del rest["state"]
        return access.accounts.users.update(user.id, requester.actor, now_ms, **rest)

    changed = access.accounts.in_one_transaction(change)
    access.rights_changed()
    _notify(notices, user, changed, requester.mail_name)
    return next(_to_schema(row, now_ms) for row in access.accounts.users.listed() if row.user.id == user.id)


@router.delete("/organisation/members/{name}", needs("org:member_update"))
def delete_member(
    name: UserName, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> DeletedMember:
    """Delete an account for good. The response names the teams that have no administrator since then."""
    user = access.accounts.users.by_name(name)
    if user.id == requester.user_id:
        raise HTTPException(409, "delete your own account in your settings")
    before = set(access.accounts.teams.without_administrator())
    primary = access.accounts.emails.primary(user.id)
    # The operator can name another administrator first, and must.
    leave = not isinstance(requester.principal, CommandLine)
    access.accounts.users.delete(user.id, requester.actor, access.clock(), leave_teams=leave)
    access.rights_changed()
    if primary is not None:
        notices.to_address(primary.address, messages.account_deleted(user.name))
    orphaned = set(access.accounts.teams.without_administrator()) - before
    return DeletedMember(teams_without_administrator=sorted(orphaned))


@router.post(
    "/organisation/members/{name}/reset", needs("org:member_update"), response_model_exclude_unset=True
)
def reset_link(name: UserName, access: TheAccess, requester: TheRequester, notices: TheNotices) -> ResetLink:
    """Send a link with which a user sets a new password within an hour.

    Where the server sends no mail, the response has the link to pass on.
    """
    user = access.accounts.users.by_name(name)
    now_ms = access.clock()
    secret = access.accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
    owner = (user.entity_id, user.name)
    access.accounts.audit.record(
        now_ms, requester.actor, "user.password_reset_link", entity=owner, target=user.name
    )
    if notices.to_user(user.id, messages.reset_password(user.name, secret)):
        return ResetLink(sent=True)
    return ResetLink(sent=False, url=f"/-/reset#{secret}")


@router.post("/organisation/names/{name}/release", needs("name:release"))
def release_name(
    name: Annotated[str, Path(max_length=64)], access: TheAccess, requester: TheRequester
) -> ReleasedName:
    """Let the name of a user or team that was deleted for good be given again.

    Someone else may then get what is sent to the old name: the audit log says who released it.
    """
    access.accounts.release_name(name, requester.actor, access.clock())
    access.rights_changed()
    return ReleasedName(name=name.lower(), released=True)


def _notify(notices: Notices, before: UserRow, after: UserRow, by: str) -> None:
    """Send mail to the user whom an administrator changed, and to all administrators about their roles."""
    if after.state != before.state:
        suspended = after.state == "suspended"
        message = messages.account_suspended if suspended else messages.account_reactivated
        notices.to_user(after.id, message(after.name))
    for field, pattern in (("org_role", "{}"), ("billing_role", "billing {}")):
        role = getattr(after, field)
        if role != getattr(before, field):
            role_text = "no billing role" if role == "none" else pattern.format(_ROLES.get(role, role))
            changed = messages.organisation_role_changed(after.name, role_text, by)
            notices.to_organisation_administrators(changed)
            if after.org_role != "admin":
                notices.to_user(after.id, changed)


_ROLES = {"admin": "administrator"}


def _verify(access: AccessControl, requester: Requester, user: UserRow) -> None:
    """Take the word of an administrator for the primary address."""
    primary = access.accounts.emails.primary(user.id)
    if primary is None:
        raise HTTPException(409, f"{user.name} has no e-mail address to verify")
    access.accounts.emails.verify(primary.id, requester.actor, access.clock())
    owner = (user.entity_id, user.name)
    access.accounts.audit.record(
        access.clock(), requester.actor, "user.verify_by_admin", entity=owner, target=user.name
    )


def _to_schema(row: ListedUser, now_ms: int) -> OrgMemberSchema:
    user = row.user
    seen_ms = user.last_seen_ms or user.created_ms
    inactive = user.state == "active" and now_ms - seen_ms > _INACTIVE_MS
    return OrgMemberSchema.model_validate(
        {
            "name": user.name,
            "display_name": user.display_name,
            "email": row.address,
            "org_role": user.org_role,
            "access": user.access,
            "billing_role": user.billing_role,
            "state": "inactive" if inactive else user.state,
            "teams": list(row.teams),
            "login_methods": ["password"] if row.password else [],
            "last_seen_ms": user.last_seen_ms,
            "created_ms": user.created_ms,
            "delete_after_ms": user.delete_after_ms,
        }
    )


def _sort_key(member: OrgMemberSchema, order: Order) -> str:
    """Return where a user stands in an order; users who are equal in it stand by name."""
    if order == "name":
        return member.name
    if order == "last_active":
        return f"{member.last_seen_ms or 0:020} {member.name}"
    return f"{getattr(member, order)} {member.name}"


def _to_csv(member: OrgMemberSchema) -> dict[str, Any]:
    columns = {"user_name": member.name, "role": member.org_role, "last_active": member.last_seen_ms}
    return {**member.model_dump(), **columns}


def _contains(member: OrgMemberSchema, text: str) -> bool:
    texts = (member.name, member.display_name, member.email or "")
    return any(text in searched.casefold() for searched in texts)
