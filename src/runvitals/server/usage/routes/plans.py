"""`/billing`: plans, their limits, and how much of them is used."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.usage.charges import CHARGES
from runvitals.server.usage.limits import Use, checked_plan
from runvitals.server.usage.routes.billing_text import PlainText
from runvitals.server.usage.routes.usage import TheReports
from runvitals.server.usage.storage.plans import ORGANISATION, AssignedPlan, PlanInUse, PlanLimit, UsagePlan

router = Router()
PlanName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=64)]


Category = Literal["tracked_hours", "device_hours", "energy", "storage", "ingest", "charges"]


class LimitForm(RequestBody):
    """A category's included units and limit to set in a plan."""

    category: Category
    included: float = Field(0.0, ge=0, le=10**12, allow_inf_nan=False)
    limit: float | None = Field(None, ge=0, le=10**12, allow_inf_nan=False)
    refuse_new_runs: bool = False


class PlanForm(RequestBody):
    """A plan to be stored."""

    description: PlainText = Field("", max_length=500)
    limits: list[LimitForm] = Field(default_factory=list, max_length=6)


class PlanAssignment(RequestBody):
    """Who is to have a plan, and from which day on; `entity` null: the organisation as a whole."""

    plan: str = Field(max_length=64)
    entity: str | None = Field(None, max_length=64)
    valid_from: date


class UseSchema(ResponseBody):
    """How much of a category a team, a user or the organisation has used this month."""

    entity: str | None = Field(description="None: the organisation.")
    category: Category
    value: float | None = Field(description="None: charges of what has no price.")
    included: float
    limit: float | None
    percent: float | None = Field(description="Of the limit; None without one.")
    expected: float | None = Field(description="At the end of the month, if it goes on so.")
    refuses_new_runs: bool


class Billing(ResponseBody):
    """This month's use and limits of everyone."""

    month: str
    currency: str
    support_contact: str = Field(description='Where users get help; "": nowhere.')
    asks_for_payment_data: bool = Field(description="Something is charged, and nobody has said yet who pays.")
    uses: list[UseSchema]


class PlanLimitSchema(ResponseBody):
    """A category's included units and limit in a plan."""

    category: Category
    included: float
    limit: float | None
    refuse_new_runs: bool


class Plan(ResponseBody):
    """A plan, with its limits."""

    name: str
    description: str
    limits: list[PlanLimitSchema]


class AssignedPlanSchema(ResponseBody):
    """The plan of a team, a user or the organisation, from a day on."""

    entity: str | None = Field(description="None: the organisation.")
    plan: str
    valid_from: str


class PlansPage(ResponseBody):
    """A page of plans by name, and who has which."""

    plans: list[Plan]
    total: int
    next: str | None
    assigned: list[AssignedPlanSchema]


@router.get("/billing", needs("billing:read"), response_model=Billing)
def billing(reports: TheReports, access: TheAccess) -> dict[str, Any]:
    """Return this month's use and limits of the organisation, each team and each user."""
    settings, names = reports.settings(), reports.names()
    used = reports.uses()
    uses = [_use(use, names.get(("entity", use.entity_id))) for use in used]
    charged = any(use.category == CHARGES and use.quantity > 0 for use in used)
    return {
        "month": reports.this_month().name,
        "currency": settings.currency,
        "support_contact": with_defaults(access.accounts.settings.all())["support_contact"] or "",
        "asks_for_payment_data": charged and not access.metadata_store.usage.documents.get("settlement"),
        "uses": uses,
    }


@router.get("/billing/plans", needs("billing:read"), response_model=PlansPage)
def plans(reports: TheReports, page: ThePage) -> dict[str, Any]:
    """All plans by name, and who has which."""
    rows, names = [_plan(plan) for plan in reports.plans.all()], reports.names()
    assigned = [
        {"entity": names.get(("entity", plan.entity_id)), "plan": plan.plan, "valid_from": plan.valid_from}
        for plan in reports.plans.assigned()
    ]
    return {**page_in_order("plans", rows, page), "assigned": assigned}


@router.put("/billing/plans/{plan}", needs("billing:manage"), response_model=Plan)
def put_plan(
    plan: PlanName, form: PlanForm, reports: TheReports, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Create a plan, or replace it."""
    limits = [
        PlanLimit(limit.category, limit.included, limit.limit, limit.refuse_new_runs) for limit in form.limits
    ]
    try:
        changed = checked_plan(plan, form.description, limits)
    except ValueError as error:
        raise InvalidFields({"limits": str(error)}) from None
    reports.plans.put(changed, requester.actor, access.clock())
    return _plan(changed)


@router.delete("/billing/plans/{plan}", needs("billing:manage"), status_code=204)
def remove_plan(plan: PlanName, reports: TheReports, access: TheAccess, requester: TheRequester) -> None:
    """Remove a plan that nobody has."""
    with answering(409, PlanInUse):
        reports.plans.remove(plan, requester.actor, access.clock())


@router.post(
    "/billing/assignments", needs("billing:manage"), response_model=AssignedPlanSchema, status_code=201
)
def assign_plan(
    assignment: PlanAssignment, reports: TheReports, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Give a plan to a team or user from a day on; without one, to the organisation as a whole."""
    entity_id = ORGANISATION
    if assignment.entity is not None:
        owner = access.directory.entity_named(assignment.entity)
        if owner is None:
            raise InvalidFields({"entity": f"there is no team or user {assignment.entity!r}"})
        entity_id = owner.id
    assigned = AssignedPlan(entity_id, assignment.valid_from.isoformat(), assignment.plan)
    try:
        reports.plans.assign(assigned, requester.actor, access.clock())
    except LookupError as error:
        raise InvalidFields({"plan": str(error)}) from None
    return {"entity": assignment.entity, "plan": assignment.plan, "valid_from": assigned.valid_from}


def _plan(plan: UsagePlan) -> dict[str, Any]:
    limits = [
        {
            "category": limit.category,
            "included": limit.included,
            "limit": limit.limit_units,
            "refuse_new_runs": limit.refuse_new_runs,
        }
        for limit in plan.limits
    ]
    return {"name": plan.name, "description": plan.description, "limits": limits}


def _use(use: Use, name: str | None) -> dict[str, Any]:
    return {
        "entity": name,
        "category": use.category,
        "value": use.value,
        "included": 0.0 if use.limit is None else use.limit.included,
        "limit": use.limit_units,
        "percent": use.share,
        "expected": use.expected,
        "refuses_new_runs": use.refuses,
    }
