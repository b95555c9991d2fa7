"""Payment of statements by another service: an optional plug-in, chosen by `RUNVITALS_PAYMENTS`.

A plug-in is an entry point of the group `runvitals.payments`: a function that takes the fetcher of the server
and its environment, and returns a `PaymentProvider`. `stripe` comes with runvitals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, Literal, Protocol, cast

from runvitals.server.outbound.fetcher import Fetcher

PROVIDER_ENVIRONMENT: Final = "RUNVITALS_PAYMENTS"
ENTRY_POINTS: Final = "runvitals.payments"
_BUILT_IN: Final = {"stripe": "runvitals.server.usage.stripe_payments"}
"""Modules with a function `from_environment`, as plug-ins have it."""
PaymentState = Literal["open", "paid", "expired"]


class PaymentFailed(Exception):
    """The service did not answer as expected."""


@dataclass(frozen=True, slots=True)
class PaymentRequest:
    """A payment to request.

    Args:
        number: of the statement.
        amount: in the smallest unit of the currency, more than 0.
        back_url: where the payer gets back to.
    """

    number: str
    period: str
    payer: str
    amount: int
    currency: str
    back_url: str


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment at the service.

    Args:
        reference: by which the service knows it.
        url: where it is paid; "": no more.
    """

    reference: str
    url: str
    state: PaymentState


class PaymentProvider(Protocol):
    """A service by which statements can be paid.

    Attributes:
        name: such as `stripe`.
    """

    name: str

    def request(self, payment: PaymentRequest) -> Payment:
        """Ask for a payment; the same statement again gives the same payment.

        Raises:
            PaymentFailed: it was not accepted.
        """

    def find(self, reference: str) -> Payment:
        """A payment as it is now.

        Raises:
            PaymentFailed: there is none, or the service does not answer.
        """


Factory = Callable[[Fetcher, Mapping[str, str]], PaymentProvider]


def payment_provider(fetcher: Fetcher, environment: Mapping[str, str]) -> PaymentProvider | None:
    """The provider that the environment names; None: statements are not paid here.

    Raises:
        ValueError: there is no such plug-in, or it lacks a setting.
    """
    name = environment.get(PROVIDER_ENVIRONMENT, "")
    if not name:
        return None
    if name in _BUILT_IN:
        provider: PaymentProvider = import_module(_BUILT_IN[name]).from_environment(fetcher, environment)
        return provider
    installed = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in installed:
        names = ", ".join(sorted({*_BUILT_IN, *installed}))
        raise ValueError(f"unknown {PROVIDER_ENVIRONMENT} {name[:60]!r}; expected one of {names}")
    return cast(Factory, installed[name].load())(fetcher, environment)
