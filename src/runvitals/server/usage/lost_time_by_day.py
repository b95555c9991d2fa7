"""Device-hours that runs lost by what was found to be wrong with them, by day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Protocol

from runvitals.model.durations import HOUR_MS
from runvitals.server.usage.days import Calendar
from runvitals.server.usage.storage.reading import LostSpan


class OfDevices(Protocol):
    """Usage of a run on a day; `device_ms` is 0 if it is not of devices."""

    day: str
    run: int | None
    device_ms: int
    lost_ms: int


def lost_by_day(
    spans: Iterable[LostSpan], calendar: Calendar, first: date, last: date
) -> dict[tuple[int, str], float]:
    """Return lost device-time in ms, by run and day.

    What a finding cost is spread evenly from its start to its end. Days before `first` and after `last` are
    left out.
    """
    lost: dict[tuple[int, str], float] = defaultdict(float)
    start_ms, end_ms = calendar.day(first).start_ms, calendar.day(last).end_ms
    for span in spans:
        from_ms, to_ms = max(span.from_ms, start_ms), min(span.to_ms, end_ms)
        if from_ms >= to_ms:
            continue
        for day in calendar.days(from_ms, to_ms - 1):
            part_ms = min(to_ms, day.end_ms) - max(from_ms, day.start_ms)
            share = part_ms / (span.to_ms - span.from_ms)
            lost[span.run_id, day.name] += span.hours * HOUR_MS * share
    return lost


def share_lost_time(used: Sequence[OfDevices], lost: Mapping[tuple[int, str], float]) -> None:
    """Give the lost time of a run and day to its devices by their time, to none more than its time."""
    times: dict[tuple[int, str], int] = defaultdict(int)
    for each in used:
        if each.run is not None:
            times[each.run, each.day] += each.device_ms
    for each in used:
        if each.run is None or not each.device_ms:
            continue
        share = min(lost.get((each.run, each.day), 0.0) / times[each.run, each.day], 1.0)
        each.lost_ms = round(each.device_ms * share)
