"""`/organisation/audit`, `/teams/{team}/audit` and `/account/audit`: who did what, the newest first."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Query, Response

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.audit.storage.audit import AuditEvent, AuditFilter
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import Millis
from runvitals.server.service_parameters import TheAccess
from runvitals.server.teams.routes.parameters import TheTeam

MAX_LIMIT = 1000
COLUMNS = (
    "id",
    "time_ms",
    "action",
    "outcome",
    "actor_kind",
    "actor_name",
    "via",
    "key_public_id",
    "ip",
    "agent",
    "request_id",
    "entity",
    "project",
    "run",
    "target",
    "before",
    "after",
)
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


@router.get("/organisation/audit", dependencies=[needs("org:audit_read")], response_model=None)
def organisation_audit(
    access: TheAccess,
    wanted: TheAuditFilter,
    entity: Annotated[str | None, Query(description="A team or user.", max_length=64)] = None,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | dict[str, Any]:
    """All events."""
    return _answer(access, replace(wanted, entity=entity), limit, format)


@router.get("/teams/{team}/audit", dependencies=[needs("team:read_audit")], response_model=None)
def team_audit(
    team: TheTeam,
    access: TheAccess,
    wanted: TheAuditFilter,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | dict[str, Any]:
    """The events of a team."""
    return _answer(access, replace(wanted, entity_id=team.id), limit, format)


@router.get("/account/audit", dependencies=[needs("account")], response_model=None)
def own_audit(
    access: TheAccess,
    requester: TheRequester,
    wanted: TheAuditFilter,
    limit: Limit = 100,
    format: Format = "json",
) -> Response | dict[str, Any]:
    """What the requester did, and what was done to their account."""
    if requester.user_id is None:
        raise HTTPException(403, "only a user has an account")
    user = access.accounts.users.get(requester.user_id)
    return _answer(access, replace(wanted, of_user=(user.id, user.entity_id)), limit, format)


def event_json(event: AuditEvent) -> dict[str, Any]:
    """An event, without internal ids."""
    return {name: getattr(event, name) for name in COLUMNS}


def _answer(
    access: AccessControl, wanted: AuditFilter, limit: int, form: Literal["json", "jsonl", "csv"]
) -> Response | dict[str, Any]:
    found = access.accounts.audit.page(wanted, limit + 1)
    page = [event_json(event) for event in found[:limit]]
    cursor = str(page[-1]["id"]) if len(found) > limit else None
    if form == "json":
        return {"events": page, "total": access.accounts.audit.count(wanted), "next": cursor}
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
