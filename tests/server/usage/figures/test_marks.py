"""What ingest notes about usage."""

from __future__ import annotations

from pathlib import Path

from runvitals.model.durations import DAY_MS
from runvitals.server.ingest.usage_marks import UsageCollector
from runvitals.server.usage.days import LATEST_MS, Calendar
from tests.empty_metadata import new_metadata_store

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


def test_requests_that_could_not_be_written_are_written_later(tmp_path: Path) -> None:
    collector = UsageCollector(lambda: Calendar("UTC"))
    collector.request(("user", 7), 2)
    collector.request(("service_account", 7))
    collector.put_back(collector.take(NOW))
    collector.request(("user", 7))
    marks = collector.take(NOW)
    assert marks.requests == {("user", 7): 3, ("service_account", 7): 1}
    with new_metadata_store(tmp_path / "catalogue.db") as store:
        store.usage.marks.add(marks)
        store.usage.marks.add(marks)
        rows = store.usage.reading.requests(marks.received_on, marks.received_on)
    assert {(row.owner_kind, row.requests) for row in rows} == {("user", 6), ("service_account", 2)}
