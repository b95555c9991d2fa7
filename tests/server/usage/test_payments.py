"""Payment of statements by a plug-in: Stripe's API is a test double."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.policy import outbound_policy
from runvitals.server.usage.days import Month
from runvitals.server.usage.payments import PaymentFailed, PaymentRequest, payment_provider
from runvitals.server.usage.stripe_payments import StripePayments
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.usage.used import use

KEY = "rk_test_1"
WANTED = PaymentRequest("RV-2026-000001", "2026-11", "vision", 1250, "EUR", "https://runs.example/back")


class StripeDouble(ThreadingHTTPServer):
    """As much of Stripe's API as is used. `forms`: what was sent, by idempotency key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.forms: dict[str, dict[str, list[str]]] = {}
        self.paid = False

    @property
    def provider(self) -> StripePayments:
        address = f"127.0.0.1:{self.server_port}"
        policy = outbound_policy([address], ["127.0.0.1"])
        return StripePayments(Fetcher(lambda: policy), KEY, f"http://{address}")


class _Handler(BaseHTTPRequestHandler):
    server: StripeDouble

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        if self.headers["authorization"] != f"Bearer {KEY}":
            return self.answer(401, {"error": {"message": "Invalid API Key"}})
        if form["line_items[0][price_data][currency]"] == ["xxx"]:
            return self.answer(400, {"error": {"message": "Invalid currency: xxx"}})
        self.server.forms[self.headers["idempotency-key"]] = form
        return self.answer(200, self.session())

    def do_GET(self) -> None:
        exists = self.path == "/v1/checkout/sessions/cs_1"
        self.answer(*((200, self.session()) if exists else (404, {"error": {"message": "No such session"}})))

    def session(self) -> dict[str, Any]:
        paid = self.server.paid
        return {
            "id": "cs_1",
            "url": None if paid else "https://checkout.stripe.com/c/cs_1",
            "status": "complete" if paid else "open",
            "payment_status": "paid" if paid else "unpaid",
        }

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """The requests are no output of the tests."""


@pytest.fixture(scope="module")
def stripe() -> Iterator[StripeDouble]:
    with StripeDouble() as double:
        thread = threading.Thread(target=double.serve_forever, args=(0.01,))
        thread.start()
        yield double
        double.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """bella is a billing administrator; a statement of 10 EUR was issued to vision."""
    with accounts_server(tmp_path_factory.mktemp("payments")) as running:
        running.user("bella", org_role="admin")
        running.user("olga", org_role="admin")
        team = running.accounts.teams.create("vision", CLI, 1)
        use(running.metadata_store, "a", "2026-10-02", entity_id=team.id, hours=4)
        price = {"category": "device_hours", "price": 2.5, "valid_from": "2026-10-01"}
        running.ask("olga", "POST", "billing/rates", 201, json=price)
        running.accounts.settings.put({"url": "https://runs.example"}, CLI, 1)
        statements = running.app.services.statements
        statements.compute(Month.named("2026-10"))
        [draft] = running.ask("bella", "GET", "billing/statements")["statements"]
        running.ask("bella", "POST", f"billing/statements/{draft['id']}/issue")
        yield running


def test_a_payment_is_requested_once_and_then_paid(server: AccountsServer, stripe: StripeDouble) -> None:
    [issued] = server.ask("bella", "GET", "billing/statements")["statements"]
    path = f"billing/statements/{issued['number']}/payment"
    assert server.ask("bella", "GET", "billing/payments") == {"provider": None}
    assert "RUNVITALS_PAYMENTS" in server.ask("bella", "POST", path, 409)["error"]
    server.app.services.payments = stripe.provider
    server.ask("olga", "POST", path, 403)
    server.ask("bella", "GET", path, 404)
    payment = server.ask("bella", "POST", path)
    assert (payment["state"], payment["url"]) == ("open", "https://checkout.stripe.com/c/cs_1")
    form = stripe.forms[f"runvitals-{issued['number']}"]
    assert form["line_items[0][price_data][unit_amount]"] == ["1000"]
    assert form["success_url"] == ["https://runs.example/-/billing/statements"]
    stripe.paid = True
    assert server.ask("bella", "GET", path)["state"] == "paid"
    server.ask("bella", "POST", "billing/statements/RV-2026-999999/payment", 404)
    assert server.actions(action="billing.payment") == ["billing.payment"]


def test_what_the_service_refuses_is_said_without_the_key(stripe: StripeDouble) -> None:
    wrong = PaymentRequest("RV-1", "2026-11", "vision", 1, "XXX", "https://runs.example")
    with pytest.raises(PaymentFailed, match="Stripe answers 400: Invalid currency"):
        stripe.provider.request(wrong)
    with pytest.raises(PaymentFailed, match="404: No such session"):
        stripe.provider.find("../../v1/charges")
    policy = outbound_policy([])
    with pytest.raises(PaymentFailed, match="does not answer") as failed:
        StripePayments(Fetcher(lambda: policy), KEY, "https://127.0.0.1:1").request(WANTED)
    assert KEY not in str(failed.value)


def test_the_provider_is_chosen_by_the_environment() -> None:
    policy = outbound_policy([])
    fetcher = Fetcher(lambda: policy)
    assert payment_provider(fetcher, {}) is None
    chosen = payment_provider(fetcher, {"RUNVITALS_PAYMENTS": "stripe", "RUNVITALS_STRIPE_KEY": KEY})
    assert chosen is not None
    assert chosen.name == "stripe"
    with pytest.raises(ValueError, match="needs a secret key in RUNVITALS_STRIPE_KEY"):
        payment_provider(fetcher, {"RUNVITALS_PAYMENTS": "stripe"})
    with pytest.raises(ValueError, match="expected one of stripe"):
        payment_provider(fetcher, {"RUNVITALS_PAYMENTS": "gold"})
