"""What a device-hour of a run costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import date

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
    whole: dict[int, int] = defaultdict(int)
    for run_id, model, day, share_ms in metadata_store.usage.reading.device_time(run_ids):
        whole[run_id] += share_ms
        price = prices.price(DEVICE_HOURS, model or "unknown", date.fromisoformat(day))
        if price is not None:
            priced[run_id] += price * share_ms
    return {run_id: amount / whole[run_id] / MICRO for run_id, amount in priced.items() if whole[run_id]}
