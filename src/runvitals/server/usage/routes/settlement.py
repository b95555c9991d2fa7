"""`/billing/settlement`: what statements say about who sends them and who pays."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess
from runvitals.server.usage.routes.billing_text import MailAddress, PlainText

router = Router()


class SettlementForm(RequestBody):
    heading: PlainText = Field("", max_length=200, description='"": that it is not a tax invoice.')
    issuer: PlainText = Field("", max_length=500, description="Who sends statements, below the name.")
    address: PlainText = Field("", max_length=500, description="Of who pays, without a cost centre.")
    contact: MailAddress = Field("", max_length=254, description="For questions about statements.")
    cost_centre: PlainText = Field("", max_length=64)
    purchase_order: PlainText = Field("", max_length=100)


@router.get("/billing/settlement", dependencies=[needs("billing:settle")])
def settlement(access: TheAccess) -> dict[str, Any]:
    """The settlement data. Statements that were issued keep what they have."""
    stored = access.metadata_store.usage.documents.get("settlement")
    return SettlementForm.model_construct(**stored).model_dump()


@router.put("/billing/settlement", dependencies=[needs("billing:settle")])
def put_settlement(form: SettlementForm, access: TheAccess, requester: TheRequester) -> dict[str, Any]:
    """Replace it, for the statements that are issued from now on."""
    wanted = form.model_dump()
    access.metadata_store.usage.documents.put("settlement", wanted, requester.actor, access.clock())
    return wanted
