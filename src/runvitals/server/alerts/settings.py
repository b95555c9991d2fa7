"""Settings of alerts: which events notify a user or team, by which channel, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from runvitals.model.durations import HOUR_MS

Switch = Literal["finished", "crashed", "custom", "findings"]
Channel = Literal["email", "slack"]
Digest = Literal["off", "hourly", "daily"]
SWITCHES: Final[tuple[Switch, ...]] = ("finished", "crashed", "custom", "findings")
CHANNELS: Final[tuple[Channel, ...]] = ("email", "slack")
LEVELS: Final = ("info", "warning", "error")
DIGESTS: Final[tuple[Digest, ...]] = ("off", "hourly", "daily")
MINUTES_A_DAY: Final = 24 * 60

SWITCH_OF: Final[Mapping[str, Switch]] = {
    "finished": "finished",
    "failed": "crashed",
    "crashed": "crashed",
    "lost": "crashed",
    "back": "crashed",
    "custom": "custom",
    "finding": "findings",
}
"""By event of a run: the switch that it belongs to."""


@dataclass(frozen=True, slots=True)
class EventChoice:
    """By which channels an event is notified."""

    email: bool = False
    slack: bool = False
    min_level: str = "info"

    def wants(self, channel: Channel, level: str) -> bool:
        """Return whether an event of a level is notified by a channel."""
        chosen = self.email if channel == "email" else self.slack
        return chosen and _rank(level) >= _rank(self.min_level)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """When nothing is notified, in minutes since midnight; from 22:00 to 7:00, `start` is later than `end`.

    Args:
        errors_pass: events of level `error` are notified at once.
    """

    on: bool = False
    start: int = 22 * 60
    end: int = 7 * 60
    errors_pass: bool = True

    def end_after(self, now_ms: int, zone: tzinfo) -> int | None:
        """Return when the quiet hours end that hold now.

        None if none do. The change of daylight saving is followed.
        """
        if not self.on or self.start == self.end:
            return None
        now = datetime.fromtimestamp(now_ms / 1000, zone)
        minute = now.hour * 60 + now.minute
        over_midnight = self.start > self.end
        within = (
            minute >= self.start or minute < self.end if over_midnight else self.start <= minute < self.end
        )
        if not within:
            return None
        day = now.date() + timedelta(days=1 if minute >= self.end else 0)
        end_ms = _time_of(day, self.end, zone)
        # Of an end that is there twice, as clocks go back, the later one is still to come.
        return end_ms if end_ms > now_ms else _time_of(day, self.end, zone, fold=1)


_OFF: Final = EventChoice()
_MAIL: Final = EventChoice(email=True)
PERSONAL_DEFAULTS: Final[Mapping[Switch, EventChoice]] = {
    "finished": _OFF,
    "crashed": _MAIL,
    "custom": _MAIL,
    "findings": _OFF,
}
TEAM_DEFAULTS: Final[Mapping[Switch, EventChoice]] = dict.fromkeys(SWITCHES, _OFF)


@dataclass(frozen=True, slots=True)
class PersonalAlerts:
    """The settings of alerts of a user, about the runs whose author the user is."""

    events: Mapping[Switch, EventChoice]
    quiet: QuietHours = QuietHours()
    digest: Digest = "off"
    daily_at: int = 8 * 60


@dataclass(frozen=True, slots=True)
class TeamAlerts:
    """The settings of alerts of a team, about the runs of its projects.

    Args:
        slack_destination: id of the team's Slack destination that gets them; None: none was chosen.
        routes: by severity, whom rules notify that name nobody, such as `slack:3`.
    """

    events: Mapping[Switch, EventChoice]
    slack_destination: int | None = None
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def personal_alerts(data: Mapping[str, Any]) -> PersonalAlerts:
    """Stored choices, with defaults for what was not chosen."""
    quiet = data.get("quiet") or {}
    return PersonalAlerts(
        _events(data, PERSONAL_DEFAULTS),
        QuietHours(**quiet),
        data.get("digest", "off"),
        data.get("daily_at", 8 * 60),
    )


def team_alerts(data: Mapping[str, Any]) -> TeamAlerts:
    """Stored choices, with defaults for what was not chosen."""
    routes = {severity: tuple(to) for severity, to in (data.get("routes") or {}).items()}
    return TeamAlerts(_events(data, TEAM_DEFAULTS), data.get("slack_destination"), routes)


def due_ms(choices: PersonalAlerts, level: str, now_ms: int, zone: tzinfo) -> int:
    """Return when a user is notified of an event: now, at the next digest, or after the quiet hours."""
    if level == "error" and choices.quiet.on and choices.quiet.errors_pass:
        return now_ms
    due = now_ms
    if choices.digest == "hourly":
        due = (now_ms // HOUR_MS + 1) * HOUR_MS
    elif choices.digest == "daily":
        due = _next_time(now_ms, choices.daily_at, zone)
    return choices.quiet.end_after(due, zone) or due


def zone_named(name: str | None) -> tzinfo:
    """Return a time zone; UTC if this machine does not know it."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return timezone.utc


def _events(data: Mapping[str, Any], defaults: Mapping[Switch, EventChoice]) -> dict[Switch, EventChoice]:
    chosen = data.get("events") or {}
    return {
        switch: EventChoice(**chosen[switch]) if switch in chosen else default
        for switch, default in defaults.items()
    }


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else 0


def _next_time(now_ms: int, minute: int, zone: tzinfo) -> int:
    """Return the next time of day after now."""
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    at_ms = _time_of(today, minute, zone)
    return at_ms if at_ms > now_ms else _time_of(today + timedelta(days=1), minute, zone)


def _time_of(day: Any, minute: int, zone: tzinfo, fold: int = 0) -> int:
    local = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zone, fold=fold)
    return int(local.timestamp() * 1000)
