"""Reports of lost device-hours by cause, with what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.findings.rules import RULES
from runvitals.server.findings.storage.lost_time import LosingRun, LostTimePeriod
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.run_prices import Pricing, run_prices
from runvitals.server.usage.settings import usage_settings

_TITLES = {rule.id: rule.title for rule in RULES}


@dataclass(slots=True)
class LostTimeReports:
    """Makes reports from the metadata store.

    Args:
        now_ms: ms UTC.
    """

    metadata_store: MetadataStore
    now_ms: int
    pricing: Pricing = field(default_factory=Pricing)

    def by_cause(self, period: LostTimePeriod) -> dict[str, Any]:
        """Return what was lost by cause, the most first, and how many runs were judged, as JSON."""
        reading = self.metadata_store.lost_time
        causes = reading.causes(period, self.now_ms)
        total, judged = reading.counts(period, self.now_ms)
        money = self._money_by_cause(period) if causes else {}
        amounts = [amount for amount in money.values() if amount is not None]
        return {
            "since_ms": period.since_ms,
            "until_ms": period.until_ms,
            "currency": self._currency(),
            "device_hours": round(sum(cause.hours for cause in causes), 3),
            "money": round(sum(amounts), 2) if amounts else None,
            "causes": [
                {
                    "id": cause.id,
                    "title": _TITLES.get(cause.id, cause.id),
                    "device_hours": round(cause.hours, 3),
                    "money": _rounded(money.get(cause.id)),
                    "runs": cause.runs,
                }
                for cause in causes
            ],
            "judged_runs": judged,
            "waiting_runs": total - judged,
        }

    def runs(
        self, period: LostTimePeriod, limit: int, skip: int, cause: str | None
    ) -> tuple[list[dict[str, Any]], int]:
        """Return runs that lost something, the most first, as JSON; and how many there are."""
        rows, total = self.metadata_store.lost_time.runs(period, self.now_ms, limit, skip, cause)
        prices = self._prices({row.run_id for row in rows})
        return [_run(row, self._price(prices, row.run_id)) for row in rows], total

    def _money_by_cause(self, period: LostTimePeriod) -> Mapping[str, float | None]:
        if self.pricing.price is None and not self.pricing.is_shown:
            return {}
        by_run = self.metadata_store.lost_time.by_run(period, self.now_ms)
        prices = self._prices({run_id for _, run_id, _ in by_run})
        money: dict[str, float] = defaultdict(float)
        for cause, run_id, hours in by_run:
            price = self._price(prices, run_id)
            if price is not None:
                money[cause] += hours * price
        return money

    def _prices(self, run_ids: set[int]) -> Mapping[int, float]:
        if self.pricing.price is not None or not self.pricing.is_shown:
            return {}
        return run_prices(self.metadata_store, run_ids)

    def _price(self, prices: Mapping[int, float], run_id: int) -> float | None:
        return prices.get(run_id) if self.pricing.price is None else self.pricing.price

    def _currency(self) -> str | None:
        """Return the currency of the organisation's prices; None if these are not used."""
        if self.pricing.price is not None or not self.pricing.is_shown:
            return None
        return usage_settings(self.metadata_store).currency


def _run(row: LosingRun, price: float | None) -> dict[str, Any]:
    return {
        "run": row.run,
        "name": row.name,
        "entity": row.entity,
        "project": row.project,
        "cause": row.cause,
        "text": row.text,
        "device_hours": round(row.hours, 3),
        "money": None if price is None else round(row.hours * price, 2),
    }


def _rounded(money: float | None) -> float | None:
    return None if money is None else round(money, 2)
