"""Collects what is noted about usage: which days must be computed, how much was received, who made requests.

It is written with the heartbeats, at most once a minute for each lane and day: a transaction of its own would
cost more than the rest. A server that is killed loses what it collected in the last minute; the roll-up then
computes the days of the writers that were heard last (`server/usage/rollup.py`). Requests and bytes of that
minute stay uncounted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from runvitals.model.durations import MINUTE_MS
from runvitals.server.clock import Due
from runvitals.server.events.usage_marks import DirtyDay, ReceivedAmount, RequestOwner, UsageMarks
from runvitals.server.ingest.validation import ValidEnvelope
from runvitals.server.usage.days import LATEST_MS, Calendar

_EVERY_MS: Final = MINUTE_MS


class UsageCollector:
    """Notes usage in memory until it is written. Thread-safe.

    Args:
        calendar: the days of the organisation's time zone.
    """

    def __init__(self, calendar: Callable[[], Calendar]) -> None:
        self._calendar = calendar
        self._lanes: dict[int, tuple[int, int, int]] = {}
        self._received: dict[int, tuple[int, int]] = {}
        self._requests: dict[RequestOwner, int] = {}
        self._due = Due()
        self._lock = threading.Lock()

    def mark(self, run_id: int, lane_id: int, first_ms: int, last_ms: int) -> None:
        """Note that a lane got samples or records of these times."""
        with self._lock:
            before = self._lanes.get(lane_id)
            if before is not None:
                first_ms, last_ms = min(first_ms, before[1]), max(last_ms, before[2])
            self._lanes[lane_id] = run_id, first_ms, last_ms

    def receive(self, run_id: int, size: int, points: int) -> None:
        """Note an envelope that was stored now, not before."""
        with self._lock:
            before = self._received.get(run_id, (0, 0))
            self._received[run_id] = before[0] + size, before[1] + points

    def request(self, owner: RequestOwner, count: int = 1) -> None:
        """Note that somebody made requests."""
        with self._lock:
            self._requests[owner] = self._requests.get(owner, 0) + count

    @property
    def has_requests(self) -> bool:
        """Whether requests are to be written."""
        return bool(self._requests)

    def take(self, now_ms: int, at_once: bool = False) -> UsageMarks:
        """Take the marks to write now; none until a minute has passed.

        Args:
            at_once: all of it now.
        """
        with self._lock:
            if not (at_once or self._due.at(now_ms)):
                return UsageMarks()
            lanes, self._lanes = self._lanes, {}
            received, self._received = self._received, {}
            requests, self._requests = self._requests, {}
            self._due.wait(now_ms, _EVERY_MS)
        calendar, since_ms = self._calendar(), now_ms - LATEST_MS
        # No days before: they are not computed, and one old sample would mark all of many years.
        dirty = [
            DirtyDay(lane_id, day.name, run_id, max(first_ms, day.start_ms, since_ms), now_ms)
            for lane_id, (run_id, first_ms, last_ms) in lanes.items()
            if last_ms >= since_ms
            for day in calendar.days(max(first_ms, since_ms), last_ms)
        ]
        return UsageMarks(
            dirty,
            {run_id: ReceivedAmount(*amounts) for run_id, amounts in received.items()},
            calendar.date_at(now_ms).isoformat(),
            requests,
        )

    def put_back(self, marks: UsageMarks) -> None:
        """Note again what could not be written."""
        for mark in marks.dirty:
            self.mark(mark.run_id, mark.lane_id, mark.from_ms, mark.from_ms)
        for run_id, received in marks.received.items():
            self.receive(run_id, received.bytes, received.points)
        for owner, requests in marks.requests.items():
            self.request(owner, requests)
        self._due.at_once()


def envelope_bytes(valid: ValidEnvelope) -> int:
    """How large an envelope is: 8 bytes a time and value, its list of keys, and its records as JSON.

    The same however it was encoded, compressed or repeated.
    """
    size = valid.keys_bytes
    if valid.columns is not None:
        size += valid.columns.nbytes
    if valid.envelope.records:
        size += len(
            msgspec.json.encode(valid.envelope.records)
        )  # MessagePack has no integers of over 64 bits
    return size
