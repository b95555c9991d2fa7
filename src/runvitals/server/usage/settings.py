"""The organisation's settings about usage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from runvitals.model.durations import MINUTE_MS
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.usage.days import Calendar


@dataclass(frozen=True, slots=True)
class UsageSettings:
    """Which days there are, and how time and energy count.

    Args:
        pue: how much energy the site takes for each kWh of its machines.
        co2_g_per_kwh: None: unknown.
    """

    calendar: Calendar
    currency: str
    idle_percent: float
    idle_ms: int
    charge_unknown_use: bool
    pue: float
    co2_g_per_kwh: float | None


def usage_settings(metadata_store: MetadataStore) -> UsageSettings:
    """The settings as they are now."""
    values: dict[str, Any] = with_defaults(metadata_store.accounts.settings.all())
    return UsageSettings(
        _calendar(values["time_zone"]),
        values["currency"],
        float(values["idle_percent"]),
        values["idle_minutes"] * MINUTE_MS,
        values["charge_unknown_use"],
        float(values["pue"]),
        values["co2_g_per_kwh"],
    )


def organisation_calendar(metadata_store: MetadataStore) -> Calendar:
    """The days of the organisation's time zone."""
    return _calendar(with_defaults(metadata_store.accounts.settings.all())["time_zone"])


@lru_cache(maxsize=8)
def _calendar(zone: str) -> Calendar:
    return Calendar(zone)
