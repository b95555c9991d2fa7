"""`/billing/rates`: prices of device hours, energy, storage and so on."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.usage.charges import MICRO, UNITS
from runvitals.server.usage.routes.billing_text import PlainText
from runvitals.server.usage.routes.usage import TheReports
from runvitals.server.usage.storage.issued_periods import PeriodIssued
from runvitals.server.usage.storage.rates import StoredRate

router = Router()
RateId = Annotated[int, Path(ge=1, le=2**31 - 1)]
_MOST = 10**9


class NewRate(RequestBody):
    """A price to be set."""

    category: Literal["tracked_hours", "device_hours", "energy", "storage", "ingest"]
    device_glob: PlainText = Field("*", min_length=1, max_length=100)
    price: float = Field(ge=0, le=_MOST, strict=True, allow_inf_nan=False)
    valid_from: date
    valid_to: date | None = None
    note: PlainText = Field("", max_length=200)


class RateEnd(RequestBody):
    """The last day of a price."""

    valid_to: date


class RateSchema(ResponseBody):
    """A price, in the organisation's currency for one unit."""

    id: int
    category: Literal["tracked_hours", "device_hours", "energy", "storage", "ingest"]
    device_glob: str
    price: float
    unit: str
    currency: str
    valid_from: str
    valid_to: str | None
    note: str
    created_by: str


RatesPage = page_body("RatesPage", "A page of prices, the newest first.", rates=list[RateSchema])


@router.get("/billing/rates", needs("billing:read"), response_model=RatesPage)
def rates(reports: TheReports, page: ThePage) -> dict[str, Any]:
    """All prices, the newest first, in the organisation's currency."""
    currency = reports.settings().currency
    return page_in_order("rates", [_rate_json(row, currency) for row in reports.rates.all()], page)


@router.post("/billing/rates", needs("billing:manage"), response_model=RateSchema, status_code=201)
def add_rate(new: NewRate, reports: TheReports, access: TheAccess, requester: TheRequester) -> Any:
    """Set a price from a day on. The most specific one applies, then the newest."""
    if new.valid_to is not None and new.valid_to < new.valid_from:
        raise InvalidFields({"valid_to": "expected a day not before the first one"})
    rate = StoredRate(
        new.category,
        new.device_glob if new.category == "device_hours" else "*",
        round(new.price * MICRO),
        new.valid_from.isoformat(),
        None if new.valid_to is None else new.valid_to.isoformat(),
        new.note,
        requester.actor.name,
    )
    with answering(409, PeriodIssued):
        added = reports.rates.add(rate, requester.actor, access.clock())
    return _rate_json(added, reports.settings().currency)


@router.patch("/billing/rates/{rate}", needs("billing:manage"), response_model=RateSchema)
def end_rate(
    rate: RateId, change: RateEnd, reports: TheReports, access: TheAccess, requester: TheRequester
) -> Any:
    """Let a price end with a day."""
    try:
        ended = reports.rates.end(rate, change.valid_to.isoformat(), requester.actor, access.clock())
    except PeriodIssued as error:
        raise HTTPException(409, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"valid_to": str(error)}) from None
    return _rate_json(ended, reports.settings().currency)


@router.delete("/billing/rates/{rate}", needs("billing:manage"), status_code=204)
def remove_rate(rate: RateId, reports: TheReports, access: TheAccess, requester: TheRequester) -> None:
    """Remove a price that no statement used."""
    with answering(409, PeriodIssued):
        reports.rates.remove(rate, requester.actor, access.clock())


def _rate_json(row: StoredRate, currency: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "category": row.category,
        "device_glob": row.device_glob,
        "price": row.price_micro / MICRO,
        "unit": UNITS[row.category],
        "currency": currency,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "note": row.note,
        "created_by": row.created_by,
    }
