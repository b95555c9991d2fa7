"""`/billing/statements/{number}/payment`: paying a statement by another service, if one was chosen."""

from __future__ import annotations

from typing import Any, Final

from fastapi import HTTPException, Request
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.errors import answering
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.server.usage.charges import MICRO
from runvitals.server.usage.payments import (
    Payment,
    PaymentFailed,
    PaymentProvider,
    PaymentRequest,
    PaymentState,
)
from runvitals.server.usage.routes.statements import Number
from runvitals.server.usage.statement_lines import digits
from runvitals.server.usage.storage.documents import payment_name
from runvitals.server.usage.storage.statements import Statement

router = Router()
_STATEMENTS: Final = "/-/billing/statements"


class PaymentMethod(ResponseBody):
    """How statements can be paid."""

    provider: str | None = Field(description="The service by which statements can be paid; None: none.")


class PaymentSchema(ResponseBody):
    """A payment at the service."""

    provider: str
    reference: str = Field(description="By which the service knows the payment.")
    url: str = Field(description='Where it is paid; "": no more.')
    state: PaymentState


@router.get("/billing/payments", needs("billing:read"), response_model=PaymentMethod)
def payments(request: Request) -> dict[str, Any]:
    """By which service statements can be paid; null: none."""
    provider = _provider(request)
    return {"provider": None if provider is None else provider.name}


@router.post("/billing/statements/{number}/payment", needs("billing:settle"), response_model=PaymentSchema)
def request_payment(
    number: Number,
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Ask the service for a payment of a statement that was issued. The answer has the address to pay at."""
    provider = _required_provider(request)
    statement = _payable(access, number)
    assert statement.number is not None
    unit = MICRO // 10 ** digits(statement.currency)
    with answering(409):
        back = outside.server_url()
    payment = PaymentRequest(
        statement.number,
        statement.period,
        statement.scope_name,
        statement.total_micro // unit,
        statement.currency,
        f"{back}{_STATEMENTS}",
    )
    with answering(502, PaymentFailed):
        requested = provider.request(payment)
    requested_payment = {"provider": provider.name, "reference": requested.reference}
    access.metadata_store.usage.documents.put(
        payment_name(statement.number), requested_payment, requester.actor, access.clock()
    )
    return _to_response(provider, requested)


@router.get("/billing/statements/{number}/payment", needs("billing:settle"), response_model=PaymentSchema)
def payment(number: Number, request: Request, access: TheAccess) -> dict[str, Any]:
    """The payment of a statement, as the service has it now."""
    statement = _payable(access, number)
    requested_payment = access.metadata_store.usage.documents.get(payment_name(statement.number or ""))
    provider = _required_provider(request)
    if requested_payment.get("provider") != provider.name:
        raise HTTPException(404, f"no payment of {statement.number} was requested of {provider.name}")
    with answering(502, PaymentFailed):
        return _to_response(provider, provider.find(requested_payment["reference"]))


def _provider(request: Request) -> PaymentProvider | None:
    return shared_services_of(request).payments


def _required_provider(request: Request) -> PaymentProvider:
    provider = _provider(request)
    if provider is None:
        raise HTTPException(409, "this server has no payment service: RUNVITALS_PAYMENTS is not set")
    return provider


def _payable(access: AccessControl, number: str) -> Statement:
    statement = access.metadata_store.usage.statements.find(number)
    if statement.state != "issued" or statement.total_micro <= 0:
        raise HTTPException(409, f"{number} cannot be paid: expected an issued statement of more than 0")
    return statement


def _to_response(provider: PaymentProvider, payment: Payment) -> dict[str, Any]:
    return {
        "provider": provider.name,
        "reference": payment.reference,
        "url": payment.url,
        "state": payment.state,
    }
