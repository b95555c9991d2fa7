"""`/billing/cost-centres`: who pays for teams, users and projects."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, page_in_order, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.usage.routes.billing_text import MailAddress, PlainText
from runvitals.server.usage.routes.usage import TheReports
from runvitals.server.usage.storage.cost_centres import CostCentre, CostCentreAssignment
from runvitals.server.usage.storage.issued_periods import PeriodIssued
from runvitals.store.errors import NameTaken

router = Router()
_CODE = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Code = Annotated[str, Path(max_length=64)]


class NewCostCentre(RequestBody):
    """A cost centre to be created."""

    code: str = Field(pattern=_CODE, max_length=64)
    name: PlainText = Field(min_length=1, max_length=200)
    address: PlainText = Field("", max_length=500)
    contact: MailAddress = Field("", max_length=254)
    purchase_order: PlainText = Field("", max_length=100)


class CostCentreChange(RequestBody):
    """Changes of a cost centre; what is left out does not change."""

    code: str = Field("", pattern=_CODE, max_length=64)
    name: PlainText = Field("", min_length=1, max_length=200)
    address: PlainText = Field("", max_length=500)
    contact: MailAddress = Field("", max_length=254)
    purchase_order: PlainText = Field("", max_length=100)


class Assignment(RequestBody):
    """Which cost centre is to pay, for what and from which day on."""

    cost_centre: str | None = Field(max_length=64, description="null: none, so the team or user itself.")
    entity: str = Field(max_length=64)
    project: str | None = Field(None, max_length=200, description="Only this project.")
    valid_from: date


class CostCentreSchema(ResponseBody):
    """Who pays."""

    code: str
    name: str
    address: str
    contact: str
    purchase_order: str


CostCentresPage = page_body(
    "CostCentresPage", "A page of cost centres, by code.", cost_centres=list[CostCentreSchema]
)


class CostCentreAssignmentSchema(ResponseBody):
    """Which cost centre pays for a team, a user or a project from a day on."""

    entity: str | None = Field(description="None: it is gone.")
    project: str | None = Field(description="None: all projects that have no cost centre of their own.")
    valid_from: str
    cost_centre: str | None = Field(description="None: none, so the team or user itself.")


CostCentreAssignmentsPage = page_body(
    "CostCentreAssignmentsPage",
    "A page of assignments of cost centres.",
    assignments=list[CostCentreAssignmentSchema],
)


@router.get("/billing/cost-centres", needs("billing:read"), response_model=CostCentresPage)
def cost_centres(reports: TheReports, page: ThePage) -> dict[str, Any]:
    """All cost centres, by code."""
    return page_of("cost_centres", reports.cost_centres.all(), lambda row: row.code, page)


@router.post(
    "/billing/cost-centres", needs("billing:manage"), response_model=CostCentreSchema, status_code=201
)
def add_cost_centre(
    new: NewCostCentre, reports: TheReports, access: TheAccess, requester: TheRequester
) -> Any:
    """Create a cost centre."""
    try:
        return reports.cost_centres.add(CostCentre(**new.model_dump()), requester.actor, access.clock())
    except NameTaken as error:
        raise InvalidFields({"code": str(error)}) from None


@router.patch("/billing/cost-centres/{code}", needs("billing:manage"), response_model=CostCentreSchema)
def change_cost_centre(
    code: Code, change: CostCentreChange, reports: TheReports, access: TheAccess, requester: TheRequester
) -> Any:
    """Change a cost centre. Statements that were issued stay as they are."""
    changes = change.model_dump(exclude_unset=True)
    try:
        return reports.cost_centres.change(code, changes, requester.actor, access.clock())
    except NameTaken as error:
        raise InvalidFields({"code": str(error)}) from None


@router.delete("/billing/cost-centres/{code}", needs("billing:manage"), status_code=204)
def delete_cost_centre(code: Code, reports: TheReports, access: TheAccess, requester: TheRequester) -> None:
    """Delete a cost centre and its assignments: who paid before them pays again.

    409 if that would change a month of which a statement was issued.
    """
    with answering(409, PeriodIssued):
        reports.cost_centres.delete(code, requester.actor, access.clock())


@router.get(
    "/billing/cost-centre-assignments", needs("billing:read"), response_model=CostCentreAssignmentsPage
)
def assignments(reports: TheReports, page: ThePage) -> dict[str, Any]:
    """Which cost centre pays for which team, user or project, and from which day on."""
    names = reports.names()
    projects = reports.project_owners()
    rows = [
        {
            "entity": names.get(("entity", row.id if row.kind == "entity" else projects.get(row.id, 0))),
            "project": names.get(("project", row.id)) if row.kind == "project" else None,
            "valid_from": row.valid_from,
            "cost_centre": row.code,
        }
        for row in reports.cost_centres.assignments()
    ]
    return page_in_order("assignments", rows, page)


@router.post(
    "/billing/cost-centre-assignments",
    needs("billing:manage"),
    response_model=CostCentreAssignmentSchema,
    status_code=201,
)
def assign(
    assignment: Assignment, reports: TheReports, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Let a cost centre pay for a team, a user or a project from a day on. That of a project comes first."""
    day = assignment.valid_from.isoformat()
    assigned, name = _to_assignment(assignment, day, access)
    try:
        reports.cost_centres.assign(assigned, name, requester.actor, access.clock())
    except LookupError as error:
        raise InvalidFields({"cost_centre": str(error)}) from None
    except PeriodIssued as error:
        raise HTTPException(409, str(error)) from None
    reports.copy_names()
    return {
        "entity": assignment.entity,
        "project": assignment.project,
        "valid_from": day,
        "cost_centre": assignment.cost_centre,
    }


def _to_assignment(
    assignment: Assignment, day: str, access: AccessControl
) -> tuple[CostCentreAssignment, str]:
    entity = access.directory.entity_named(assignment.entity)
    if entity is None:
        raise InvalidFields({"entity": f"there is no team or user {assignment.entity!r}"})
    if assignment.project is None:
        return CostCentreAssignment("entity", entity.id, day, assignment.cost_centre), assignment.entity
    project = access.directory.project_named(entity.id, assignment.project)
    if project is None:
        raise InvalidFields({"project": f"{assignment.entity} has no project {assignment.project!r}"})
    name = f"{assignment.entity}/{assignment.project}"
    return CostCentreAssignment("project", project.id, day, assignment.cost_centre), name
