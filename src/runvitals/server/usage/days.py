"""Calendar days and months in a time zone. A day of a clock change has 23 or 25 hours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from runvitals.model.durations import DAY_MS

LATEST_MS = 31 * DAY_MS
"""Samples that come later than this count for storage and ingestion only."""
_MONTH = re.compile(r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])")
_LAST = "9998-12"
"""The months after it have no end in a Python `date`."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def day_named(name: str) -> date:
    """Return the day of a name such as `2026-11-23`, or raise ValueError."""
    if not _DAY.fullmatch(name) or name[:7] > _LAST:
        raise ValueError(f"invalid day {name!r}; expected a day such as 2026-11-23")
    return date.fromisoformat(name)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day: from `start_ms` until before `end_ms`, ms UTC."""

    date: date
    start_ms: int
    end_ms: int

    @property
    def name(self) -> str:
        """Such as `2026-11-23`."""
        return self.date.isoformat()


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month.

    Example:
        >>> Month.named("2026-02").days
        28
    """

    year: int
    number: int

    @classmethod
    def named(cls, name: str) -> Month:
        """Return the month of a name such as `2026-11`, or raise ValueError."""
        if not _MONTH.fullmatch(name) or name > _LAST:
            raise ValueError(f"invalid month {name!r}; expected a month such as 2026-11")
        year, _, number = name.partition("-")
        return cls(int(year), int(number))

    @classmethod
    def of(cls, day: date) -> Month:
        """The month of a day."""
        return cls(day.year, day.month)

    @property
    def name(self) -> str:
        """The month as text, such as `2026-11`."""
        return f"{self.year:04}-{self.number:02}"

    @property
    def first(self) -> date:
        """The first day."""
        return date(self.year, self.number, 1)

    @property
    def last(self) -> date:
        """The last day."""
        return self.next.first - timedelta(days=1)

    @property
    def days(self) -> int:
        """The number of days."""
        return self.last.day

    @property
    def next(self) -> Month:
        """Return the month after this one."""
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def previous(self) -> Month:
        """Return the month before this one."""
        return Month.of(self.first - timedelta(days=1))


class Calendar:
    """The days of a time zone.

    Example:
        >>> day = Calendar("Europe/Berlin").day(date(2026, 3, 29))  # the clocks go forward
        >>> (day.end_ms - day.start_ms) // 3_600_000
        23
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self._zone = ZoneInfo(zone)

    def date_at(self, time_ms: int) -> date:
        """The day in which a time lies."""
        return datetime.fromtimestamp(time_ms // 1000, self._zone).date()

    def day(self, day: date) -> Day:
        """Return a day from its midnight to the next one: 23 to 25 hours where clocks change."""
        return Day(day, self._midnight_ms(day), self._midnight_ms(day + timedelta(days=1)))

    def days(self, from_ms: int, until_ms: int) -> Iterator[Day]:
        """The days that overlap a range of times, both ends included."""
        day, last = self.date_at(from_ms), self.date_at(max(from_ms, until_ms))
        while day <= last:
            yield self.day(day)
            day += timedelta(days=1)

    def _midnight_ms(self, day: date) -> int:
        # Where the clocks go forward at midnight, the day begins with the first time that exists.
        return int(datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp()) * 1000
