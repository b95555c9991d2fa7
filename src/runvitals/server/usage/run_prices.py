"""What a device-hour of a run costs, and who may see that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.charges import DEVICE_HOURS, MICRO
from runvitals.server.usage.report import price_list


def run_prices(metadata_store: MetadataStore, run_ids: Collection[int]) -> dict[int, float]:
    """Return the price of a device-hour of runs, in the organisation's currency, by run.

    Of a run with devices of several models, the mean by their time. Runs whose devices have no price are left
    out, and those of which no usage was computed yet.
    """
    prices = price_list(metadata_store)
    priced: dict[int, float] = defaultdict(float)
    device_ms: dict[int, int] = defaultdict(int)
    for run_id, model, day, share_ms in metadata_store.usage.reading.device_time(run_ids):
        device_ms[run_id] += share_ms
        price = prices.price(DEVICE_HOURS, model or "unknown", date.fromisoformat(day))
        if price is not None:
            priced[run_id] += price * share_ms
    return {
        run_id: amount / device_ms[run_id] / MICRO for run_id, amount in priced.items() if device_ms[run_id]
    }


@dataclass(frozen=True, slots=True)
class Pricing:
    """By which prices lost hours become money.

    Args:
        price: of each device-hour; None: the prices of the organisation.
        is_shown: whether the prices of the organisation may be shown.
    """

    price: float | None = None
    is_shown: bool = False


def may_see_prices(access: AccessControl, requester: Requester, entity: str | None) -> bool:
    """Return whether the requester may see what the runs of a team or user cost; without one, of all."""
    if access.may(requester, Action.BILLING_READ, Organisation()):
        return True
    owner = None if entity is None else access.directory.entity_named(entity)
    return owner is not None and access.may(requester, Action.USAGE_READ_TEAM, owner)
