"""The server's own metrics, in the Prometheus text format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from runvitals.server.background.housekeeping import HousekeepingTotals
from runvitals.server.events.outbox import OutboxLength
from runvitals.store.samples.interface import StoreStats

ACK_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class SelfMetrics:
    """Counts accepted and rejected ingest requests. Call it on the event loop only.

    Example:
        >>> metrics = SelfMetrics()
        >>> metrics.count_ingested(envelopes=1, points=600, body_bytes=2000, seconds=0.004)
        >>> "runvitals_ingest_points_total 600" in metrics.exposition(store.stats(), HousekeepingTotals())
        True
    """

    def __init__(self) -> None:
        self._requests = self._envelopes = self._points = self._body_bytes = 0
        self._rejected = Counter[int]()
        self._acks = [0] * (len(ACK_BUCKETS_S) + 1)
        self._seconds = 0.0

    def count_ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        """Count a request that was acknowledged after `seconds`."""
        self._requests += 1
        self._envelopes += envelopes
        self._points += points
        self._body_bytes += body_bytes
        self._acks[bisect_left(ACK_BUCKETS_S, seconds)] += 1
        self._seconds += seconds

    def count_rejected(self, status: int) -> None:
        """Count a rejected request."""
        self._rejected[status] += 1

    def exposition(
        self,
        store: StoreStats,
        housekeeping: HousekeepingTotals,
        threads: Mapping[str, str | None] | None = None,
    ) -> str:
        """Return the text of `/metrics`.

        Args:
            store: statistics of the sample store.
            housekeeping: what it has dropped.
            threads: background threads by name, with their problem if they fail.
        """
        lines = []
        totals = {
            "requests": self._requests,
            "envelopes": self._envelopes,
            "points": self._points,
            "body_bytes": self._body_bytes,
        }
        for name, total in totals.items():
            lines += _counter(f"runvitals_ingest_{name}_total", total)
        lines.append("# TYPE runvitals_ingest_refused_total counter")
        for status, count in sorted(self._rejected.items()):
            lines.append(f'runvitals_ingest_refused_total{{status="{status}"}} {count}')
        lines += self._histogram("runvitals_ingest_ack_seconds")
        for name in ("runs", "samples", "unsealed_samples", "waiting_batches", "size_bytes", "cold_bytes"):
            lines += [
                f"# TYPE runvitals_store_{name} gauge",
                f"runvitals_store_{name} {getattr(store, name)}",
            ]
        lines += [
            "# TYPE runvitals_store_failing gauge",
            f"runvitals_store_failing {int(store.problem is not None)}",
            "# TYPE runvitals_store_warnings gauge",
            f"runvitals_store_warnings {len(store.warnings)}",
            "# TYPE runvitals_thread_failing gauge",
        ]
        for thread, problem in (threads or {}).items():
            lines.append(f'runvitals_thread_failing{{thread="{thread}"}} {int(problem is not None)}')
        for name, count in (
            ("samples", housekeeping.samples),
            ("bytes", housekeeping.bytes),
            ("runs", housekeeping.runs),
        ):
            lines += _counter(f"runvitals_housekeeping_dropped_{name}_total", count)
        done = "runvitals_housekeeping_last_success_timestamp_seconds"
        lines += [f"# TYPE {done} gauge", f"{done} {housekeeping.done_ms / 1000}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str) -> list[str]:
        lines = [f"# TYPE {name} histogram"]
        totals = list(accumulate(self._acks))
        for edge, total in zip((*map(str, ACK_BUCKETS_S), "+Inf"), totals, strict=True):
            lines.append(f'{name}_bucket{{le="{edge}"}} {total}')
        return [*lines, f"{name}_sum {self._seconds!r}", f"{name}_count {totals[-1]}"]


def _counter(name: str, value: int) -> list[str]:
    return [f"# TYPE {name} counter", f"{name} {value}"]


def waiting_text(waiting: OutboxLength, now_ms: int) -> str:
    """Return the part of `/metrics` about notifications that have not arrived yet."""
    age_s = 0.0 if waiting.oldest_ms is None else max(0, now_ms - waiting.oldest_ms) / 1000
    number, oldest = "runvitals_notifications_waiting", "runvitals_notifications_oldest_seconds"
    lines = [f"# TYPE {number} gauge", f"{number} {waiting.waiting}"]
    return "\n".join([*lines, f"# TYPE {oldest} gauge", f"{oldest} {age_s!r}"]) + "\n"


def leader_text(leads: bool) -> str:
    """Return the part of `/metrics` about which of several servers leads."""
    return f"# TYPE runvitals_leader gauge\nrunvitals_leader {int(leads)}\n"
