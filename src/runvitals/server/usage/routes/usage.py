"""`/usage`: what runs used in a month, by team, project, user and so on."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, HTTPException, Query, Request, Response
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Account, Entity, Organisation
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.csv_response import csv_text
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.immediate import immediate
from runvitals.server.http.router import Router
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.server.usage.focus import COLUMNS, focus_rows
from runvitals.server.usage.report import UsageSelection
from runvitals.server.usage.reports import BY_DEFAULT, UsageReports, dimensions, range_of

router = Router()
_PERMISSION: Final = "filtered usage:read_team"
_BY_OF_MEMBERS: Final = frozenset(("day", "month", "team", "author", "service_account", "job_type", "model"))
"""By what members see the usage of their team, where the organisation lets them. Not by project: they need
not know of all of them."""


class UsageFigures(ResponseBody):
    """Hours, energy, storage, ingestion, and what they cost. None: not known."""

    runs: int
    tracked_hours: float
    host_hours: float
    cpu_hours: float | None = Field(description="CPU time of the processes of runs.")
    device_hours: float
    device_unknown_use_hours: float
    device_busy_hours: float
    device_idle_hours: float
    device_hung_hours: float
    device_failed_hours: float
    device_wasted_hours: float
    device_lost_hours: float = Field(description="Lost by what was found to be wrong with runs.")
    energy_kwh: float | None
    energy_measured_share: float | None
    energy_unknown_hours: float
    co2_kg: float | None
    storage_gb_month: float
    storage_bytes_end: int
    ingest_gb: float
    points: int
    requests: int
    cost: float | None = Field(description="None: nothing that was used has a price.")
    wasted: float | None
    wasted_failed: float | None
    wasted_hung: float | None
    lost: float | None = Field(description="What the lost device-hours cost.")


class UsageReport(ResponseBody):
    """Usage by some dimensions, and in all."""

    first: str = Field(alias="from")
    to: str
    time_zone: str
    currency: str
    rows: list[dict[str, Any]] = Field(description="A name for each dimension of `by`, and the figures.")
    sums: UsageFigures
    forecast: float | None = Field(description="What the month will have cost; None: not known.")


@immediate
def usage_reports(request: Request) -> UsageReports:
    """Return the reports of this server."""
    return shared_services_of(request).usage_reports


TheReports = Annotated[UsageReports, Depends(usage_reports)]


def selection(
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    reports: TheReports,
    month: Annotated[str | None, Query(description="Such as 2026-11; default: this month.")] = None,
    first: Annotated[str | None, Query(alias="from", description="The first day.", max_length=10)] = None,
    last: Annotated[
        str | None, Query(alias="to", description="The last day, included.", max_length=10)
    ] = None,
    entity: Annotated[str | None, Query(description="Only this team or user.", max_length=64)] = None,
    author: Annotated[Literal["me"] | None, Query(description="Only the requester's own runs.")] = None,
) -> UsageSelection:
    """The usage that is asked for, if the requester may see it."""
    try:
        start, end = range_of(month, first, last, reports.this_month())
    except ValueError as error:
        raise InvalidFields({"month" if month is not None else "from": str(error)}) from None
    usage = UsageSelection(start, end)
    if author == "me":
        if not isinstance(requester.principal, User):
            raise HTTPException(422, "author=me: only users have runs of their own")
        usage = replace(usage, author_id=requester.principal.id)
    parameters = request.query_params
    by = frozenset((parameters.get("by") or "project").split(",")) | (
        {"project"} if "project" in parameters else set()
    )
    return _readable(access, requester, usage, entity, by)


def _readable(
    access: AccessControl,
    requester: Requester,
    usage: UsageSelection,
    entity: str | None,
    by: frozenset[str],
) -> UsageSelection:
    """The selection within a team or user; raises if the requester may not see it.

    Everyone may see the usage of their own runs, administrators that of their team, billing readers all.
    With the setting `usage_names`, members see that of their team by user, too.
    """
    reads_all = access.may(requester, Action.BILLING_READ, Organisation())
    if entity is None:
        if usage.author_id is None:
            access.require(requester, Action.BILLING_READ, Organisation(), "the organisation", changes=False)
        return usage
    owner, what = access.directory.entity_named(entity), f"team or user {entity!r}"
    if owner is None:
        access.hide(requester, what)
    if usage.author_id is not None and not reads_all and not _knows(access, requester, owner):
        access.hide(requester, what)
    if usage.author_id is None and not reads_all and not _member_may(access, requester, owner, by):
        access.require(requester, Action.USAGE_READ_TEAM, owner, what, changes=False)
    return replace(usage, entity_id=owner.id)


def _knows(access: AccessControl, requester: Requester, owner: Entity) -> bool:
    """Return whether the requester may know that there is this team or user."""
    if owner.owner_id is None:
        return access.may(requester, Action.TEAM_PROFILE, owner)
    return not owner.deleted and access.may(requester, Action.USER_READ, Account(owner.owner_id))


def _member_may(access: AccessControl, requester: Requester, team: Entity, by: frozenset[str]) -> bool:
    """Return whether the requester may see this usage as a member of the team."""
    return (
        by <= _BY_OF_MEMBERS
        and isinstance(requester.principal, User)
        and team.id in requester.principal.teams
        and access.may(requester, Action.TEAM_READ, team)
        and bool(with_defaults(access.accounts.settings.all())["usage_names"])
    )


TheSelection = Annotated[UsageSelection, Depends(selection)]
By = Annotated[
    str | None,
    Query(
        description="Some of day, month, team, project, author, service_account, job_type, model, "
        "cost_centre, sweep and run, separated by commas.",
        max_length=200,
    ),
]
OneProject = Annotated[str | None, Query(description="Only the project of this name.", max_length=200)]


def _by(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return dimensions(text, default)
    except ValueError as error:
        raise InvalidFields({"by": str(error)}) from None


@router.get("/usage", needs(_PERMISSION), response_model=UsageReport)
def usage(
    selected: TheSelection,
    reports: TheReports,
    by: By = None,
    project: OneProject = None,
    format: Literal["json", "csv"] = "json",
) -> dict[str, Any] | Response:
    """Report hours, energy, storage, ingestion and costs of runs in a month or range of days."""
    if format == "csv":
        return _csv(reports, selected, _by(by, BY_DEFAULT), project)
    return reports.report(selected, _by(by, ("month", "team", "project")), project)


@router.get("/usage.csv", needs(_PERMISSION), response_model=None)
def usage_csv(
    selected: TheSelection, reports: TheReports, by: By = None, project: OneProject = None
) -> Response:
    """The same as CSV, with all columns."""
    return _csv(reports, selected, _by(by, BY_DEFAULT), project)


@router.get("/usage/focus.csv", needs(_PERMISSION), response_model=None)
def focus(selected: TheSelection, reports: TheReports, access: TheAccess) -> Response:
    """The same in the format of the FinOps Open Cost and Usage Specification (FOCUS 1.1)."""
    organisation = with_defaults(access.accounts.settings.all())["name"]
    return _response(csv_text(COLUMNS, focus_rows(reports, selected, organisation)))


def _csv(
    reports: UsageReports, selected: UsageSelection, by: tuple[str, ...], project: str | None
) -> Response:
    columns, lines = reports.table(selected, by, project)
    return _response(csv_text(columns, lines))


def _response(text: str) -> Response:
    lines = text.replace("\n", "\r\n")  # RFC 4180
    return Response(lines, media_type="text/csv; charset=utf-8", headers={"cache-control": "no-store"})
