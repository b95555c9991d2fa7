"""A line of a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatementLine:
    """What a project used of a category at one price, in units such as hours.

    Args:
        text: what it is besides usage of the statement's month, such as `late data of 2026-10`; or "".
        included: the part of the quantity that the plan includes.
        price_micro, amount_micro: micro-units of the currency.
    """

    text: str
    project: str
    category: str
    model: str
    quantity: float
    unit: str
    included: float
    price_micro: int
    amount_micro: int
