"""Reports of lost device-hours by cause, with what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runvitals.findings.rules import RULES
from runvitals.server.findings.storage.lost_time_reading import (
    LosingPlace,
    LosingRun,
    LostTimePeriod,
    RunHours,
)
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.run_prices import Pricing, run_prices
from runvitals.server.usage.settings import usage_settings

K = TypeVar("K")
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
        money = self._money(period, lambda run_hours: run_hours.cause) if causes else {}
        return {
            "since_ms": period.since_ms,
            "until_ms": period.until_ms,
            "currency": self._currency(),
            "device_hours": round(sum(cause.hours for cause in causes), 3),
            "money": round(sum(money.values()), 2) if money else None,
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

    def places(
        self, period: LostTimePeriod, by_project: bool, limit: int, skip: int, cause: str | None
    ) -> tuple[list[tuple[LosingPlace, float | None]], int]:
        """Return teams and users, or projects, with what they lost in money; and how many there are."""
        reading = self.metadata_store.lost_time
        rows, total = reading.places(period, self.now_ms, by_project, limit, skip, cause)

        def owner_of(each: RunHours) -> tuple[int | None, int | None]:
            return each.entity_id, each.project_id if by_project else None

        money = self._money(period, owner_of, cause)
        return [(row, _rounded(money.get((row.entity_id, row.project_id)))) for row in rows], total

    def _money(
        self, period: LostTimePeriod, key: Callable[[RunHours], K], cause: str | None = None
    ) -> Mapping[K, float]:
        """Sum what was lost in money by a key of cause and run; what has no price is left out."""
        if self.pricing.price is None and not self.pricing.is_shown:
            return {}
        by_run = self.metadata_store.lost_time.by_run(period, self.now_ms, cause)
        prices = self._prices({each.run_id for each in by_run})
        money: dict[K, float] = defaultdict(float)
        for each in by_run:
            price = self._price(prices, each.run_id)
            if price is not None:
                money[key(each)] += each.hours * price
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
        "from_ms": row.from_ms,
        "to_ms": row.to_ms,
        "device_hours": round(row.hours, 3),
        "money": None if price is None else round(row.hours * price, 2),
    }


def _rounded(money: float | None) -> float | None:
    return None if money is None else round(money, 2)
