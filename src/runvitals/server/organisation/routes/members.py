"""`/organisation/members`: all users, their roles in the organisation, access and state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query, Response

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import CommandLine
from runvitals.server.access.requester import Requester, TheRequester
from runvitals.server.access.resources import Organisation
from runvitals.server.accounts.routes.services import TheNotices
from runvitals.server.accounts.storage.users import ListedUser, UserRow
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices

CSV_COLUMNS = ("user_name", "email", "role", "access", "teams", "state", "last_active")
_INACTIVE_MS = 182 * DAY_MS
_OWN = ("org_role", "access", "state")
UserName = Annotated[str, Path(max_length=64)]


class MemberChanges(RequestBody):
    org_role: Literal["member", "admin"] | None = None
    access: Literal["full", "viewer", "none"] | None = None
    billing_role: Literal["none", "viewer", "admin"] | None = None
    state: Literal["active", "suspended"] | None = None


router = Router()


@router.get("/organisation/members", dependencies=[needs("org:member_read")], response_model=None)
def members(
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    text: Annotated[str, Query(description="Part of name or address.", max_length=100)] = "",
    org_role: Literal["member", "admin"] | None = None,
    member_access: Annotated[Literal["full", "viewer", "none"] | None, Query(alias="access")] = None,
    state: Literal["unverified", "active", "inactive", "suspended"] | None = None,
    team: Annotated[str | None, Query(max_length=64)] = None,
    format: Annotated[Literal["json", "csv"], Query(description="csv: all of them.")] = "json",
) -> dict[str, Any] | Response:
    """The users who fit all conditions, by name. `inactive`: not seen for half a year."""
    wanted = {"org_role": org_role, "access": member_access, "state": state}
    rows = [_member_json(row, access.clock()) for row in access.accounts.users.listed()]
    rows = [
        row
        for row in rows
        if all(value is None or row[name] == value for name, value in wanted.items())
        and (team is None or team in row["teams"])
        and _contains(row, text.casefold())
    ]
    if format == "csv":
        return csv_response(CSV_COLUMNS, map(_csv_row, rows))
    listed = page_of("members", rows, lambda row: str(row["name"]), page, lambda row: row)
    may = frozenset((Action.ORG_MEMBER_UPDATE, Action.ORG_INVITE, Action.BILLING_ASSIGN))
    return {**listed, "may": access.may_list(requester, Organisation(), may)}


@router.patch("/organisation/members/{name}", dependencies=[needs("org:member_update")])
def change_member(
    name: UserName,
    changes: MemberChanges,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> dict[str, Any]:
    """Change a user's role in the organisation, access, billing role or state."""
    user = access.accounts.users.by_name(name)
    wanted = changes.model_dump(exclude_none=True)
    own = [field for field in _OWN if field in wanted and user.id == requester.user_id]
    if own:
        raise HTTPException(409, f"you cannot change your own {own[0]}; ask another administrator")
    if "billing_role" in wanted:
        access.require(requester, Action.BILLING_ASSIGN, Organisation(), "the organisation")
    now_ms = access.clock()

    def change() -> UserRow:
        fields = dict(wanted)
        if fields.get("state") == "active" and user.state == "unverified":
            _verify(access, requester, user)
            del fields["state"]
        return access.accounts.users.update(user.id, requester.actor, now_ms, **fields)

    changed = access.accounts.in_one_transaction(change)
    access.rights_changed()
    _notify(notices, user, changed, requester.mail_name)
    return next(_member_json(row, now_ms) for row in access.accounts.users.listed() if row.user.id == user.id)


@router.delete("/organisation/members/{name}", dependencies=[needs("org:member_update")])
def delete_member(
    name: UserName, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> dict[str, Any]:
    """Delete an account for good. The answer names the teams that have no administrator since then."""
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
    return {"teams_without_administrator": sorted(orphaned)}


@router.post("/organisation/members/{name}/reset", dependencies=[needs("org:member_update")])
def reset_link(
    name: UserName, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> dict[str, Any]:
    """Send a link with which a user sets a new password within an hour.

    Where the server sends no mail, the answer has the link to pass on.
    """
    user = access.accounts.users.by_name(name)
    now_ms = access.clock()
    secret = access.accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
    owner = (user.entity_id, user.name)
    access.accounts.audit.record(
        now_ms, requester.actor, "user.password_reset_link", entity=owner, target=user.name
    )
    if notices.to_user(user.id, messages.reset_password(user.name, secret)):
        return {"sent": True}
    return {"sent": False, "url": f"/-/reset#{secret}"}


def _notify(notices: Notices, before: UserRow, after: UserRow, by: str) -> None:
    """Send mail to the user whom an administrator changed, and to all administrators about their roles."""
    if after.state != before.state:
        suspended = after.state == "suspended"
        message = messages.account_suspended if suspended else messages.account_reactivated
        notices.to_user(after.id, message(after.name))
    for field, what in (("org_role", "{}"), ("billing_role", "billing {}")):
        role = getattr(after, field)
        if role != getattr(before, field):
            shown = "no billing role" if role == "none" else what.format(_ROLES.get(role, role))
            changed = messages.organisation_role_changed(after.name, shown, by)
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


def _member_json(row: ListedUser, now_ms: int) -> dict[str, Any]:
    user = row.user
    seen_ms = user.last_seen_ms or user.created_ms
    inactive = user.state == "active" and now_ms - seen_ms > _INACTIVE_MS
    return {
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


def _csv_row(row: dict[str, Any]) -> dict[str, Any]:
    renamed = {"user_name": row["name"], "role": row["org_role"], "last_active": row["last_seen_ms"]}
    return {**row, **renamed}


def _contains(row: dict[str, Any], text: str) -> bool:
    return any(text in (row[name] or "").casefold() for name in ("name", "display_name", "email"))
