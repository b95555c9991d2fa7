"""Usage in the FOCUS format: the FinOps Open Cost and Usage Specification, 1.1.

One row for each day, team, project, user, category and device model. What a plan includes is the difference
between the list cost and the billed cost. The columns are those that 1.1 requires of every provider, and
those that it requires where there are unit prices, usage and sub-accounts; discounts, commitments and regions
do not exist here. A charge for usage must have a unit price in this format, so it is 0 for what has none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone
from typing import Final

from runvitals.server.usage.charges import (
    DEVICE_HOURS,
    ENERGY,
    INGEST,
    MICRO,
    STORAGE,
    TRACKED_HOURS,
    UNITS,
    in_units,
)
from runvitals.server.usage.days import Calendar, Month
from runvitals.server.usage.report import Atom, Labels, UsageSelection
from runvitals.server.usage.reports import UsageReports

COLUMNS: Final = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)
_SERVICES: Final = {
    TRACKED_HOURS: ("Other", "Tracking of runs"),
    DEVICE_HOURS: ("AI and Machine Learning", "Accelerators"),
    ENERGY: ("Other", "Energy"),
    STORAGE: ("Storage", "Storage"),
    INGEST: ("Analytics", "Ingestion"),
}
_UNITS: Final = {"h": "Hours", "GB-month": "GB-Months"}
"""Units that FOCUS writes in another way."""
_TAG_PREFIX: Final = "runvitals/"
"""Of tags that no user made, as the specification demands."""
_PROVIDERS: Final = ("InvoiceIssuerName", "ProviderName", "PublisherName")
_Key = tuple[str, str, str | None, str | None, str | None, str]


def focus_rows(reports: UsageReports, selection: UsageSelection, organisation: str) -> Iterator[list[object]]:
    """The rows of a range of days.

    Args:
        organisation: its name, for the billing account.
    """
    settings, labels, prices = reports.settings(), reports.labels(selection), reports.prices()
    groups: dict[_Key, list[Atom]] = defaultdict(list)
    for atom in reports.selected_atoms(selection, None, labels):
        for category in atom.amounts():
            model = atom.model if category == DEVICE_HOURS else ""
            team, project, author = (labels.of(atom, name) for name in ("team", "project", "author"))
            groups[atom.day, category, team, project, author, model].append(atom)
    for key in sorted(groups, key=lambda key: tuple(value or "" for value in key)):
        day, category, _, _, _, model = key
        price = prices.price(category, model, date.fromisoformat(day))
        yield _row(key, groups[key], labels, settings.calendar, (settings.currency, price), organisation)


def _row(
    key: _Key,
    of_key: Sequence[Atom],
    labels: Labels,
    calendar: Calendar,
    price: tuple[str, int | None],
    organisation: str,
) -> list[object]:
    day, category, team, project, author, model = key
    month = Month.named(day[:7])
    quantity = in_units(category, sum(atom.amounts()[category] for atom in of_key), month)
    currency, price_micro = price
    amount = sum(atom.costs.get(category, 0) for atom in of_key) / MICRO
    sku = f"{category}/{model}" if model else category
    service_category, service = _SERVICES[category]
    tags = {"author": author, "cost_centre": labels.of(of_key[0], "cost_centre")}
    values: dict[str, object] = {
        **_periods(day, month, calendar),
        **dict.fromkeys(_PROVIDERS, organisation or "runvitals"),
        **_costs(sku, quantity, UNITS[category], amount, price_micro or 0),
        "BillingAccountId": organisation or "runvitals",
        "BillingAccountName": organisation or "runvitals",
        "BillingCurrency": currency,
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{service}{f' on {model}' if model else ''}",
        "ChargeFrequency": "Usage-Based",
        "ResourceId": f"{team or ''}/{project or ''}",
        "ResourceName": project,
        "ResourceType": "Project",
        "ServiceCategory": service_category,
        "ServiceName": service,
        "SubAccountId": team,
        "SubAccountName": team,
        "SkuMeter": service,
        "SkuPriceDetails": _json({"DeviceModel": model}) if model else None,
        "Tags": _json({_TAG_PREFIX + name: value for name, value in tags.items() if value is not None}),
    }
    return [values.get(name) for name in COLUMNS]


def _costs(sku: str, quantity: float, unit: str, amount: float, price_micro: int) -> dict[str, object]:
    """Return FOCUS's columns of cost, quantity, unit and price."""
    price = price_micro / MICRO
    return {
        **dict.fromkeys(("BilledCost", "EffectiveCost"), amount),
        **dict.fromkeys(("ConsumedQuantity", "PricingQuantity"), quantity),
        **dict.fromkeys(("ConsumedUnit", "PricingUnit"), _UNITS.get(unit, unit)),
        **dict.fromkeys(("ContractedCost", "ListCost"), quantity * price),
        **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), price),
        "SkuId": sku,
        "SkuPriceId": f"{sku}@{price}",
    }


def _periods(day: str, month: Month, calendar: Calendar) -> dict[str, str]:
    """The month and the day of a charge."""
    charged = calendar.day(date.fromisoformat(day))
    return {
        "BillingPeriodStart": _time(calendar.day(month.first).start_ms),
        "BillingPeriodEnd": _time(calendar.day(month.last).end_ms),
        "ChargePeriodStart": _time(charged.start_ms),
        "ChargePeriodEnd": _time(charged.end_ms),
    }


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(tags: dict[str, str]) -> str:
    return json.dumps(tags, sort_keys=True)
