"""This month's use of teams in the Prometheus text format, for tools that charge for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runvitals.server.usage.days import Month
from runvitals.server.usage.report import UsageSelection
from runvitals.server.usage.reports import UsageReports
from runvitals.server.usage.settings import UsageSettings

_GAUGES: Final = {
    "runvitals_usage_tracked_hours": "tracked_hours",
    "runvitals_usage_host_hours": "host_hours",
    "runvitals_usage_cpu_hours": "cpu_hours",
    "runvitals_usage_device_hours": "device_hours",
    "runvitals_usage_device_idle_hours": "device_idle_hours",
    "runvitals_usage_device_hung_hours": "device_hung_hours",
    "runvitals_usage_energy_kwh": "energy_kwh",
    "runvitals_usage_co2_kg": "co2_kg",
    "runvitals_usage_storage_bytes": "storage_bytes_end",
    "runvitals_usage_ingest_gigabytes": "ingest_gb",
    "runvitals_usage_requests": "requests",
    "runvitals_usage_cost": "cost",
    "runvitals_usage_wasted_cost": "wasted",
}
"""The figure of each gauge. All are of this month so far; the month is a label."""


class UsageGauges:
    """The usage of this month, as it was when it was last computed.

    Attributes:
        text: in the Prometheus text format; empty before the first update.
    """

    def __init__(self, reports: UsageReports) -> None:
        self._reports = reports
        self.text = ""

    def update(self, settings: UsageSettings, now_ms: int) -> None:
        """Compute the gauges anew: after each roll-up."""
        month = Month.of(settings.calendar.date_at(now_ms))
        rows = self._reports.rows(UsageSelection(month.first, month.last), ("team", "model"))
        lines: list[str] = []
        for gauge, figure in _GAUGES.items():
            lines.append(f"# TYPE {gauge} gauge")
            for row in rows:
                value = row.figures[figure]
                if value:
                    money = {"currency": settings.currency} if figure in ("cost", "wasted") else {}
                    lines.append(f"{gauge}{_labels({'month': month.name, **row.key, **money})} {value!r}")
        self.text = "".join(f"{line}\n" for line in lines)


def _labels(values: Mapping[str, Any]) -> str:
    r"""Return labels as Prometheus writes them, without empty ones.

    Example:
        >>> _labels({"team": 'the "best"', "model": None})
        '{team="the \\"best\\""}'
    """
    labels = (f'{name}="{_escape(value)}"' for name, value in values.items() if value)
    return "{" + ",".join(labels) + "}"


def _escape(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
