"""How the organisation's billing is set up.

`/billing/administrators`: who looks after it. `/billing/settlement`: what statements say about who sends
them and who pays. `/billing/alerts`: at which use of limits and at which charges who gets a mail.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.usage.routes.billing_text import MailAddress, PlainText
from runvitals.server.usage.storage.alerts import Recipients
from runvitals.server.usage.usage_alerts import AlertSettings, alert_settings

router = Router()
Category = Literal["tracked_hours", "device_hours", "energy", "storage", "ingest", "charges"]


class BillingAdministrator(ResponseBody):
    """A user with a role in billing."""

    name: str
    display_name: str
    org_role: Literal["member", "admin"]
    billing_role: Literal["viewer", "admin"]
    state: str


BillingAdministratorsPage = page_body(
    "BillingAdministratorsPage",
    "A page of billing administrators and viewers, by name.",
    administrators=list[BillingAdministrator],
)


@router.get("/billing/administrators", needs("billing:read"), response_model=BillingAdministratorsPage)
def administrators(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """List the billing administrators and billing viewers, by name.

    `PATCH /organisation/members/{name}` with `billing_role` changes who they are.
    """
    users = [listed.user for listed in access.accounts.users.listed() if listed.user.billing_role != "none"]
    return page_of("administrators", users, lambda user: user.name, page)


class SettlementForm(RequestBody):
    """The sender and payer to name on statements."""

    heading: PlainText = Field("", max_length=200, description='"": that it is not a tax invoice.')
    issuer: PlainText = Field("", max_length=500, description="Who sends statements, below the name.")
    address: PlainText = Field("", max_length=500, description="Of who pays, without a cost centre.")
    contact: MailAddress = Field("", max_length=254, description="For questions about statements.")
    cost_centre: PlainText = Field("", max_length=64)
    purchase_order: PlainText = Field("", max_length=100)


class Settlement(ResponseBody):
    """The sender and payer on statements."""

    heading: str = ""
    issuer: str = ""
    address: str = ""
    contact: str = ""
    cost_centre: str = ""
    purchase_order: str = ""


@router.get("/billing/settlement", needs("billing:settle"), response_model=Settlement)
def settlement(access: TheAccess) -> Any:
    """The settlement data. Statements that were issued keep what they have."""
    return access.metadata_store.usage.documents.get("settlement")


@router.put("/billing/settlement", needs("billing:settle"), response_model=Settlement)
def put_settlement(form: SettlementForm, access: TheAccess, requester: TheRequester) -> Any:
    """Replace it, for the statements that are issued from now on."""
    access.metadata_store.usage.documents.put(
        "settlement", form.model_dump(), requester.actor, access.clock()
    )
    return form


class AlertForm(RequestBody):
    """When mails are to be sent, and to whom."""

    percent: list[Annotated[int, Field(ge=1, le=1000)]] = Field(min_length=1, max_length=20)
    amounts: list[Annotated[int, Field(ge=1, le=10**9)]] = Field(min_length=1, max_length=20)
    recipients: Recipients
    categories: dict[Category, bool] = Field(
        default_factory=dict, description="Whether there are mails; what is left out is on."
    )


class AlertCategories(ResponseBody):
    """Whether there are mails, by category."""

    tracked_hours: bool
    device_hours: bool
    energy: bool
    storage: bool
    ingest: bool
    charges: bool


class UsageAlertSettings(ResponseBody):
    """When mails are sent, and to whom."""

    percent: list[int]
    amounts: list[int]
    recipients: Recipients
    categories: AlertCategories


@router.get("/billing/alerts", needs("billing:read"), response_model=UsageAlertSettings)
def alerts(access: TheAccess) -> Any:
    """Percent of limits and amounts of charges at which mails are sent, once a month each, and to whom."""
    return alert_settings(access.metadata_store).as_json()


@router.put("/billing/alerts", needs("billing:manage"), response_model=UsageAlertSettings)
def put_alerts(form: AlertForm, access: TheAccess, requester: TheRequester) -> Any:
    """Replace all of it."""
    settings = AlertSettings(
        tuple(sorted(set(form.percent))),
        tuple(sorted(set(form.amounts))),
        form.recipients,
        frozenset(category for category, on in form.categories.items() if not on),
    ).as_json()
    access.metadata_store.usage.documents.put("alerts", settings, requester.actor, access.clock())
    return settings
