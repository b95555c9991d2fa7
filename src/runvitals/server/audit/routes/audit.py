"""`/organisation/audit`, `/teams/{team}/audit` and `/account/audit`: who did what, the newest first."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Query, Response

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.audit.storage.audit import AuditFilter
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import Millis
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.teams.routes.parameters import TheTeam

MAX_LIMIT = 1000
Name = Annotated[str | None, Query(max_length=256)]
Format = Annotated[Literal["json", "jsonl", "csv"], Query(description="One JSON object, lines, or a table.")]


def audit_filter(
    action: Annotated[str | None, Query(description="`team.invite`, `team.*`", max_length=64)] = None,
    actor: Name = None,
    project: Name = None,
    run: Name = None,
    from_ms: Annotated[Millis, Query(alias="from")] = None,
    until_ms: Annotated[Millis, Query(alias="to")] = None,
    outcome: Annotated[Literal["ok", "denied"] | None, Query()] = None,
    after: Annotated[str | None, Query(description="`next` of the previous page.", max_length=20)] = None,
) -> AuditFilter:
    """Which events are requested.

    Raises:
        HTTPException: 422 for an invalid pattern or cursor.
    """
    if action is not None and "*" in action[:-1]:
        raise HTTPException(422, f"action={action!r}: `*` is allowed at the end only")
    if after is not None and not (after.isascii() and after.isdigit() and len(after) < 19):
        raise HTTPException(422, f"after={after[:60]!r}: expected `next` of the previous page")
    return AuditFilter(
        action=action,
        actor=actor,
        project=project,
        run=run,
        from_ms=from_ms,
        until_ms=until_ms,
        outcome=outcome,
        before_id=None if after is None else int(after),
    )


TheAuditFilter = Annotated[AuditFilter, Depends(audit_filter)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]

router = Router()


class AuditEventSchema(ResponseBody):
    """An event, without internal ids. `before` and `after`: what was changed, by name."""

    id: int
    time_ms: int
    action: str
    outcome: str
    actor_kind: str
    actor_name: str
    via: str
    key_public_id: str | None
    ip: str | None
    agent: str | None
    request_id: str | None
    entity: str | None
    project: str | None
    run: str | None
    target: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(ResponseBody):
    """A page of events."""

    events: list[AuditEventSchema]
    total: int
    next: str | None


COLUMNS = tuple(AuditEventSchema.model_fields)


@router.get("/organisation/audit", needs("org:audit_read"), response_model=AuditPage)
def organisation_audit(
    access: TheAccess,
    requested: TheAuditFilter,
    entity: Annotated[str | None, Query(description="A team or user.", max_length=64)] = None,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | AuditPage:
    """All events."""
    return _respond(access, replace(requested, entity=entity), limit, format)


@router.get("/teams/{team}/audit", needs("team:read_audit"), response_model=AuditPage)
def team_audit(
    team: TheTeam,
    access: TheAccess,
    requested: TheAuditFilter,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | AuditPage:
    """The events of a team."""
    return _respond(access, replace(requested, entity_id=team.id), limit, format)


@router.get("/account/audit", needs("account"), response_model=AuditPage)
def own_audit(
    access: TheAccess,
    requester: TheRequester,
    requested: TheAuditFilter,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | AuditPage:
    """List what the requester did, and what was done to their account."""
    if requester.user_id is None:
        raise HTTPException(403, "only a user has an account")
    user = access.accounts.users.get(requester.user_id)
    return _respond(access, replace(requested, of_user=(user.id, user.entity_id)), limit, format)


def _respond(
    access: AccessControl, requested: AuditFilter, limit: int, form: Literal["json", "jsonl", "csv"]
) -> Response | AuditPage:
    rows = access.accounts.audit.page(requested, limit + 1)
    events = [AuditEventSchema.model_validate(row) for row in rows[:limit]]
    cursor = str(events[-1].id) if len(rows) > limit else None
    if form == "json":
        return AuditPage(events=events, total=access.accounts.audit.count(requested), next=cursor)
    page = [event.model_dump() for event in events]
    if form == "jsonl":
        lines = "".join(json.dumps(event) + "\n" for event in page)
        response = Response(lines, media_type="application/x-ndjson", headers={"cache-control": "no-store"})
    else:
        for event in page:
            for name in ("before", "after"):
                event[name] = None if event[name] is None else json.dumps(event[name])
        response = csv_response(COLUMNS, page)
    if cursor is not None:
        response.headers["runvitals-next"] = cursor
    return response
