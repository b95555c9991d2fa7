"""Prices, and what usage costs: exact in millionths of the currency (micro-units)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Final

from runvitals.server.usage.days import Calendar, Month

TRACKED_HOURS: Final = "tracked_hours"
DEVICE_HOURS: Final = "device_hours"
ENERGY: Final = "energy"
STORAGE: Final = "storage"
INGEST: Final = "ingest"
CATEGORIES: Final = (TRACKED_HOURS, DEVICE_HOURS, ENERGY, STORAGE, INGEST)
"""What has a price."""
CHARGES: Final = "charges"
LIMITED: Final = (*CATEGORIES, CHARGES)
"""What a plan may limit."""
UNITS: Final = {
    TRACKED_HOURS: "h",
    DEVICE_HOURS: "h",
    ENERGY: "kWh",
    STORAGE: "GB-month",
    INGEST: "GB",
}
MICRO: Final = 1_000_000
_GB: Final = 10**9
_PER_UNIT: Final = {TRACKED_HOURS: 3_600_000, DEVICE_HOURS: 3_600_000, ENERGY: 3_600_000_000, INGEST: _GB}
_WILDCARDS: Final = "*?["


@dataclass(frozen=True, slots=True)
class BillingRate:
    """A price for some days.

    Args:
        device_glob: of which device models, for device hours.
        price_micro: for an hour, kWh, GB-month or GB.
        valid_to: the last day; None: no end.
    """

    id: int
    category: str
    device_glob: str
    price_micro: int
    valid_from: date
    valid_to: date | None = None

    def applies(self, category: str, model: str, day: date) -> bool:
        """Return whether this price is one for a category and device model on a day."""
        return (
            self.category == category
            and self.valid_from <= day
            and (self.valid_to is None or day <= self.valid_to)
            and (category != DEVICE_HOURS or fnmatchcase(model.casefold(), self.device_glob.casefold()))
        )

    @property
    def literal_length(self) -> int:
        """How many characters of the glob are no wildcards."""
        return sum(character not in _WILDCARDS for character in self.device_glob)


class PriceList:
    """The price of each category, model and day: of the most specific rate, then of the newest.

    Example:
        >>> h100 = Rate(2, "device_hours", "*H100*", 3_000_000, date(2026, 1, 1))
        >>> PriceList([Rate(1, "device_hours", "*", 1_000_000, date(2026, 1, 1)), h100]).price(
        ...     "device_hours", "NVIDIA H100 80GB HBM3", date(2026, 11, 23))
        3000000
    """

    def __init__(self, rates: Iterable[BillingRate]) -> None:
        self._rates = sorted(
            rates, key=lambda rate: (rate.literal_length, rate.valid_from, rate.id), reverse=True
        )
        self._prices: dict[tuple[str, str, date], int | None] = {}

    def price(self, category: str, model: str, day: date) -> int | None:
        """Micro-units for a unit; None if there is no price."""
        key = category, model, day
        if key not in self._prices:
            applying = (rate.price_micro for rate in self._rates if rate.applies(category, model, day))
            self._prices[key] = next(applying, None)
        return self._prices[key]


@dataclass(frozen=True, slots=True)
class UsedAmount:
    """An amount used of a category on a day.

    Args:
        quantity: ms, millijoules or bytes; of storage, the bytes of the day.
        owner: whatever distinguishes amounts for the caller.
    """

    day: date
    category: str
    quantity: int
    model: str = ""
    owner: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of an amount.

    Attributes:
        included: the part of the quantity that the plan includes.
        price_micro, amount_micro: None if there is no price.
    """

    used: UsedAmount
    included: int
    price_micro: int | None
    amount_micro: int | None


def per_unit(category: str, month: Month) -> int:
    """How much of a quantity is one unit: an hour, a kWh, a GB, or a GB for the month."""
    return _GB * month.days if category == STORAGE else _PER_UNIT[category]


def in_units(category: str, quantity: int, month: Month) -> float:
    """A quantity in the unit of its category.

    Example:
        >>> in_units("energy", 1_800_000_000, Month(2026, 11))
        0.5
    """
    return float(Fraction(quantity, per_unit(category, month)))


def charge(
    used: Sequence[UsedAmount],
    month: Month,
    included: Callable[[str], float],
    prices: PriceList,
) -> list[Charge]:
    """Charge an entity's amounts of a month; included amounts are used up in the order of the days.

    Args:
        included: units of a category that the plan includes.
    """
    included_left = {
        category: Fraction(included(category)) * per_unit(category, month)
        for category in {use.category for use in used}
    }
    charges = []
    for use in sorted(used, key=lambda use: (use.day, use.category, use.model, repr(use.owner))):
        free = min(use.quantity, int(included_left[use.category]))
        included_left[use.category] -= free
        price = prices.price(use.category, use.model, use.day)
        amount = None if price is None else cost(use.quantity - free, use.category, month, price)
        charges.append(Charge(use, free, price, amount))
    return charges


def cost(quantity: int, category: str, month: Month, price_micro: int) -> int:
    """Micro-units for a quantity, rounded half to even."""
    return round(Fraction(quantity * price_micro, per_unit(category, month)))


def total(charges: Iterable[Charge]) -> int | None:
    """The sum of what has a price; None if nothing has one."""
    amounts = [charge.amount_micro for charge in charges if charge.amount_micro is not None]
    return sum(amounts) if amounts else None


FORECAST_FROM_DAY: Final = 3


def expect(value: float, calendar: Calendar, month: Month, now_ms: int) -> float | None:
    """Return a month's sum at its end if it goes on so; None in its first two days, or in another month.

    Example:
        >>> days = Calendar("UTC")
        >>> expect(10.0, days, Month(2026, 11), days.day(date(2026, 11, 16)).start_ms)
        20.0
    """
    today = calendar.date_at(now_ms)
    if Month.of(today) != month or today.day < FORECAST_FROM_DAY:
        return None
    start_ms, end_ms = calendar.day(month.first).start_ms, calendar.day(month.last).end_ms
    return value * (end_ms - start_ms) / (now_ms - start_ms)
