"""Payments by Stripe: a Checkout session for each statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked
from runvitals.server.usage.payments import Payment, PaymentFailed, PaymentRequest, PaymentState

KEY_ENVIRONMENT: Final = "RUNVITALS_STRIPE_KEY"
URL_ENVIRONMENT: Final = "RUNVITALS_STRIPE_URL"
_URL: Final = "https://api.stripe.com"
_OK: Final = 200
_STATES: Final[Mapping[str, PaymentState]] = {"open": "open", "complete": "paid", "expired": "expired"}


class StripePayments:
    """The service of Stripe.

    Args:
        key: a secret key with the right to write Checkout sessions.
        url: of its API, or of a test double.
    """

    name = "stripe"

    def __init__(self, fetcher: Fetcher, key: str, url: str = _URL) -> None:
        self._fetcher = fetcher
        self._headers = {"authorization": f"Bearer {key}"}
        self._sessions = f"{url}/v1/checkout/sessions"

    def request(self, payment: PaymentRequest) -> Payment:
        """Ask for a payment. Stripe gives the same session to the same request for a day."""
        form = {
            "mode": "payment",
            "client_reference_id": payment.number,
            "metadata[statement]": payment.number,
            "line_items[0][quantity]": "1",
            "line_items[0][price_data][currency]": payment.currency.lower(),
            "line_items[0][price_data][unit_amount]": str(payment.amount),
            "line_items[0][price_data][product_data][name]": f"Statement {payment.number} of {payment.payer} "
            f"for {payment.period}",
            "success_url": payment.back_url,
            "cancel_url": payment.back_url,
        }
        headers = {
            **self._headers,
            "content-type": "application/x-www-form-urlencoded",
            "idempotency-key": f"runvitals-{payment.number}",
        }
        try:
            response = self._fetcher.post(self._sessions, urlencode(form).encode("ascii"), headers)
        except (FetchFailed, Blocked) as error:
            raise PaymentFailed(f"Stripe does not answer: {error}") from None
        return _payment(response.status, response.body)

    def find(self, reference: str) -> Payment:
        """The session as it is now."""
        try:
            url = f"{self._sessions}/{quote(reference, safe='')}"
            response = self._fetcher.get(url, headers=self._headers)
        except (FetchFailed, Blocked) as error:
            raise PaymentFailed(f"Stripe does not answer: {error}") from None
        return _payment(response.status, response.body)


def from_environment(fetcher: Fetcher, environment: Mapping[str, str]) -> StripePayments:
    """Return Stripe's payments, or raise ValueError when the key is not set."""
    key = environment.get(KEY_ENVIRONMENT, "")
    if not (key.isascii() and key.isprintable() and key):
        raise ValueError(f"RUNVITALS_PAYMENTS=stripe needs a secret key in {KEY_ENVIRONMENT}")
    return StripePayments(fetcher, key, environment.get(URL_ENVIRONMENT, _URL))


def _payment(status: int, body: bytes) -> Payment:
    try:
        session: Any = json.loads(body)
        if status != _OK:
            raise PaymentFailed(f"Stripe answers {status}: {str(session['error']['message'])[:200]}")
        state = "paid" if session["payment_status"] == "paid" else _STATES[session["status"]]
        return Payment(str(session["id"]), str(session.get("url") or ""), state)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PaymentFailed(f"Stripe answers {status}, and not as its documentation says") from None
