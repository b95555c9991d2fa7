"""Reports of usage as JSON, as CSV and in the FOCUS format: the same for the API and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.charges import PriceList, expect
from runvitals.server.usage.days import Month, day_named
from runvitals.server.usage.limits import Use, uses
from runvitals.server.usage.report import (
    DIMENSIONS,
    Atom,
    Labels,
    UsageRow,
    UsageSelection,
    atoms,
    figures,
    price_list,
    rows,
)
from runvitals.server.usage.settings import UsageSettings, usage_settings
from runvitals.server.usage.storage.cost_centres import CostCentreTable
from runvitals.server.usage.storage.plans import PlanTable
from runvitals.server.usage.storage.rates import RateTable

BY_DEFAULT: Final = ("month", "team", "project", "author", "cost_centre", "model")
_EXTRA: Final = ("day", "job_type", "service_account", "sweep", "run")
CSV_COLUMNS: Final = (
    "month",
    "entity_kind",
    "entity",
    "project",
    "author",
    "cost_centre",
    "runs",
    "tracked_hours",
    "host_hours",
    "device_model",
    "device_hours",
    "device_busy_hours",
    "device_idle_hours",
    "energy_kwh",
    "energy_measured_share",
    "co2_kg",
    "storage_gb_month",
    "storage_bytes_end",
    "ingest_gb",
    "points",
    "cost",
    "currency",
    "cpu_hours",
    "device_unknown_use_hours",
    "device_failed_hours",
    "device_wasted_hours",
    "energy_unknown_hours",
    "wasted",
    "wasted_failed",
    "device_hung_hours",
    "wasted_hung",
    "requests",
    "device_lost_hours",
    "lost",
)


class UsageReports:
    """Makes reports from the metadata store.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._metadata_store = metadata_store
        self._clock = clock

    @property
    def rates(self) -> RateTable:
        """The prices."""
        return self._metadata_store.usage.rates

    @property
    def plans(self) -> PlanTable:
        """The plans."""
        return self._metadata_store.usage.plans

    @property
    def cost_centres(self) -> CostCentreTable:
        """Who pays."""
        return self._metadata_store.usage.cost_centres

    def uses(self) -> list[Use]:
        """Return the use and limit of each entity and category this month."""
        return uses(self._metadata_store, self.settings(), self._clock())

    def names(self) -> Mapping[tuple[str, int], str]:
        """Names by kind and id."""
        return self._metadata_store.usage.reading.names()

    def copy_names(self) -> None:
        """Copy the names of teams, users and projects as they are now, for `names`."""
        self._metadata_store.usage.figures.copy_names()

    def project_owners(self) -> Mapping[int, int]:
        """The ids of the teams and users that own projects now, by project."""
        return self._metadata_store.usage.reading.project_owners()

    def settings(self) -> UsageSettings:
        """Return the organisation's settings of usage as they are now."""
        return usage_settings(self._metadata_store)

    def this_month(self) -> Month:
        """The month it is now in the organisation's time zone."""
        return Month.of(self.settings().calendar.date_at(self._clock()))

    def selected_atoms(self, selection: UsageSelection, project: str | None, labels: Labels) -> list[Atom]:
        """The usage of a range of days, of one project or of all."""
        used = atoms(self._metadata_store, self.settings(), selection)
        return [atom for atom in used if project is None or labels.of(atom, "project") == project]

    def labels(self, selection: UsageSelection) -> Labels:
        """Return the names of what was used in a range of days."""
        reading = self._metadata_store.usage.reading
        uids = reading.run_uids(selection.first.isoformat(), selection.last.isoformat())
        return Labels(reading.names(), uids, reading.cost_centres(), reading.sweeps())

    def prices(self) -> PriceList:
        """The prices as they are now."""
        return price_list(self._metadata_store)

    def rows(
        self, selection: UsageSelection, by: Sequence[str], project: str | None = None
    ) -> list[UsageRow]:
        """Rows by some dimensions."""
        labels = self.labels(selection)
        return rows(self.selected_atoms(selection, project, labels), by, labels, self.settings())

    def report(
        self, selection: UsageSelection, by: Sequence[str], project: str | None = None
    ) -> dict[str, Any]:
        """Rows and sums as JSON."""
        settings, labels = self.settings(), self.labels(selection)
        used = self.selected_atoms(selection, project, labels)
        sums = figures(used, settings)
        return {
            "from": selection.first.isoformat(),
            "to": selection.last.isoformat(),
            "time_zone": settings.calendar.zone,
            "currency": settings.currency,
            "rows": [{**row.key, **row.figures} for row in rows(used, by, labels, settings)],
            "sums": sums,
            "forecast": self._forecast(selection, sums["cost"], settings),
        }

    def _forecast(
        self, selection: UsageSelection, amount: float | None, settings: UsageSettings
    ) -> float | None:
        """Return the present month's cost at its end; None in its first days and for other ranges."""
        month = Month.of(selection.first)
        if amount is None or (selection.first, selection.last) != (month.first, month.last):
            return None
        return expect(amount, settings.calendar, month, self._clock())

    def table(
        self, selection: UsageSelection, by: Sequence[str] = BY_DEFAULT, project: str | None = None
    ) -> tuple[tuple[str, ...], Iterator[list[object]]]:
        """The columns of the CSV, and its rows; dimensions that are not asked for are empty."""
        extra = tuple(name for name in _EXTRA if name in by)
        kinds = self._metadata_store.usage.reading.entity_kinds()
        currency = self.settings().currency
        rows = self.rows(selection, by, project)
        month = Month.of(selection.first)
        is_one_month = selection.last <= month.last

        def lines() -> Iterator[list[object]]:
            for row in rows:
                values = {
                    "month": month.name if is_one_month else None,
                    **row.figures,
                    **row.key,
                    "entity": row.key.get("team"),
                    "entity_kind": kinds.get(row.key.get("team") or ""),
                    "device_model": row.key.get("model"),
                    "currency": None if row.figures["cost"] is None else currency,
                }
                yield [values.get(name) for name in (*extra, *CSV_COLUMNS)]

        return (*extra, *CSV_COLUMNS), lines()


def dimensions(text: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The dimensions of a text such as `team,model`.

    Raises:
        ValueError: one of them does not exist, or is there twice.
    """
    if not text:
        return tuple(default)
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in DIMENSIONS:
            raise ValueError(f"unknown dimension {name[:40]!r}; expected some of {', '.join(DIMENSIONS)}")
    if len(set(names)) < len(names):
        raise ValueError("a dimension occurs twice")
    return names


def range_of(month: str | None, first: str | None, last: str | None, present: Month) -> tuple[date, date]:
    """The first and last day of a month, or of a range of days; without either, of the present month.

    Raises:
        ValueError: an invalid month or day, both, or more than two years.
    """
    if first is None and last is None:
        chosen = present if month is None else Month.named(month)
        return chosen.first, chosen.last
    if month is not None or first is None or last is None:
        raise ValueError("expected a month, or both from and to")
    try:
        start, end = day_named(first), day_named(last)
    except ValueError:
        raise ValueError("invalid day; expected days such as 2026-11-23") from None
    if not 0 <= (end - start).days <= 2 * 366:
        raise ValueError("expected at most two years, from before to")
    return start, end
