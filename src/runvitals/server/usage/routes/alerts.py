"""`/billing/alerts`: at which use of limits and at which charges who gets a mail."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess
from runvitals.server.usage.storage.alerts import Recipients
from runvitals.server.usage.usage_alerts import AlertSettings, alert_settings

router = Router()
Category = Literal["tracked_hours", "device_hours", "energy", "storage", "ingest", "charges"]


class AlertForm(RequestBody):
    percent: list[Annotated[int, Field(ge=1, le=1000)]] = Field(min_length=1, max_length=20)
    amounts: list[Annotated[int, Field(ge=1, le=10**9)]] = Field(min_length=1, max_length=20)
    recipients: Recipients
    categories: dict[Category, bool] = Field(
        default_factory=dict, description="Whether there are mails; what is left out is on."
    )


@router.get("/billing/alerts", dependencies=[needs("billing:read")])
def alerts(access: TheAccess) -> dict[str, Any]:
    """Percent of limits and amounts of charges at which mails are sent, once a month each, and to whom."""
    return alert_settings(access.metadata_store).as_json()


@router.put("/billing/alerts", dependencies=[needs("billing:manage")])
def put_alerts(form: AlertForm, access: TheAccess, requester: TheRequester) -> dict[str, Any]:
    """Replace all of it."""
    wanted = AlertSettings(
        tuple(sorted(set(form.percent))),
        tuple(sorted(set(form.amounts))),
        form.recipients,
        frozenset(category for category, on in form.categories.items() if not on),
    ).as_json()
    access.metadata_store.usage.documents.put("alerts", wanted, requester.actor, access.clock())
    return wanted
