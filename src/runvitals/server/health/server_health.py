"""`ServerHealth`: the condition of a server and its stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runvitals.server.background.housekeeping import HousekeepingTotals
from runvitals.server.health.other_servers import OtherServers
from runvitals.server.health.self_metrics import SelfMetrics, leader_text, waiting_text
from runvitals.server.health.store_condition import StoreCondition
from runvitals.server.usage.gauges import UsageGauges
from runvitals.store.supervised_thread import SupervisedThread


@dataclass(slots=True, kw_only=True)
class ServerHealth:
    """The condition of a server and its stores.

    Attributes:
        clock: the time now, ms UTC.
        tally: counts what the server does.
        usage_gauges: what teams have used.
        housekeeping: totals of housekeeping, which may be replaced.
        threads: background threads whose failures are reported; more may be added.
        run_trash_ms: how long runs stay in the trash; None: as long as the setting `trash_days` says.
    """

    condition: StoreCondition
    others: OtherServers
    clock: Callable[[], int]
    tally: SelfMetrics
    usage_gauges: UsageGauges
    housekeeping: HousekeepingTotals = field(default_factory=HousekeepingTotals)
    threads: list[SupervisedThread] = field(default_factory=list)
    run_trash_ms: int | None = None

    async def readiness(self) -> tuple[str | None, Sequence[str]]:
        """Return why the server cannot make samples durable, None if it can; and what needs attention."""
        problem, warnings = await self.condition.readiness()
        failures = [f"{thread.name}: {thread.problem}" for thread in self.threads if thread.problem]
        return problem, [*warnings, *failures]

    async def exposition(self) -> str:
        """Return the metrics of the server itself, in Prometheus' text format."""
        stats, waiting = await asyncio.gather(self.condition.stats(), self.condition.outbox())
        threads = {**stats.threads, **{thread.name: thread.problem for thread in self.threads}}
        text = self.tally.exposition(stats, self.housekeeping, threads) + leader_text(self.others.leads())
        return text if waiting is None else text + waiting_text(waiting, self.clock())
