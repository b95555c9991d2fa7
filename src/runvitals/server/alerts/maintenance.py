"""Times in which a rule is evaluated but tells nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from runvitals.server.alerts.settings import zone_named

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MAX_WINDOWS: Final = 20
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time once, or hours of some days of every week.

    Args:
        from_ms, to_ms: once, ms UTC.
        days: of every week, 0 for Monday; empty: once.
        start, end: minutes since midnight in `zone`; an end before the start is on the next day.
    """

    from_ms: int = 0
    to_ms: int = 0
    days: frozenset[int] = frozenset()
    start: int = 0
    end: int = 24 * 60
    zone: str = "UTC"

    def has(self, time_ms: int) -> bool:
        """Return whether a time lies within."""
        if not self.days:
            return self.from_ms <= time_ms < self.to_ms
        local = datetime.fromtimestamp(time_ms / 1000, zone_named(self.zone))
        minute, day = local.hour * 60 + local.minute, local.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        yesterday = (day - 1) % 7
        return (day in self.days and minute >= self.start) or (yesterday in self.days and minute < self.end)


def maintenance_windows(value: Any) -> tuple[Maintenance, ...]:
    """Return the windows of a rule's definition.

    They are `{"from_ms", "to_ms"}`, or `{"days": ["sat"], "from": "22:00", "to": "06:00", "zone":
    "Europe/Berlin"}`.

    Raises:
        ValueError: something else.
    """
    if not isinstance(value, (list, tuple)) or len(value) > MAX_WINDOWS:
        raise ValueError(f"expected a list of at most {MAX_WINDOWS} windows")
    return tuple(_window(item) for item in value)


def _window(item: Any) -> Maintenance:
    if isinstance(item, dict) and set(item) == {"from_ms", "to_ms"}:
        start, end = item["from_ms"], item["to_ms"]
        if type(start) is int and type(end) is int and 0 <= start < end < 2**53:
            return Maintenance(start, end)
        raise ValueError("expected from_ms before to_ms, in ms UTC")
    if not isinstance(item, dict) or not set(item) <= {"days", "from", "to", "zone"}:
        raise ValueError("expected from_ms and to_ms, or days, from, to and zone")
    days = item.get("days")
    if not isinstance(days, list) or not days or not all(day in DAYS for day in days):
        raise ValueError(f"expected days as a list of {', '.join(DAYS)}")
    zone = item.get("zone", "UTC")
    if not isinstance(zone, str) or (zone != "UTC" and zone_named(zone) == timezone.utc):
        raise ValueError(f"unknown time zone {str(zone)[:60]!r}")
    numbers = frozenset(DAYS.index(day) for day in days)
    return Maintenance(
        0, 0, numbers, _minute(item.get("from", "00:00")), _minute(item.get("to", "24:00")), zone
    )


def _minute(text: Any) -> int:
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("expected a time such as 22:00")
    return 24 * 60 if match[1] is None else int(match[1]) * 60 + int(match[2])
