"""What ingest notes about usage."""

from __future__ import annotations

from runvitals.model.durations import DAY_MS
from runvitals.server.ingest.usage_marks import UsageCollector
from runvitals.usage.days import LATEST_MS, Calendar

NOW = 1_795_000_000_000
IN_2001 = 1_000_000_000_000


def test_old_samples_mark_no_days_that_are_not_computed() -> None:
    collector = UsageCollector(lambda: Calendar("UTC"))
    collector.mark(1, 1, IN_2001, NOW)
    collector.mark(1, 2, IN_2001, IN_2001 + DAY_MS)
    collector.mark(1, 3, NOW - DAY_MS, NOW)
    dirty = collector.take(NOW).dirty
    assert {mark.lane_id for mark in dirty} == {1, 3}
    assert len(dirty) == LATEST_MS // DAY_MS + 1 + 2
    assert min(mark.from_ms for mark in dirty) == NOW - LATEST_MS
