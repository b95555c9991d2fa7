"""Usage of a range of days in rows: by team, project, author, model and so on, with what it costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any, Final

from runvitals.model.durations import HOUR_MS
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.charges import (
    DEVICE_HOURS,
    ENERGY,
    INGEST,
    MICRO,
    STORAGE,
    TRACKED_HOURS,
    BillingRate,
    Charge,
    PriceList,
    UsedAmount,
    charge,
    cost,
)
from runvitals.server.usage.days import Month
from runvitals.server.usage.lost_time_by_day import lost_by_day, share_lost_time
from runvitals.server.usage.settings import UsageSettings
from runvitals.server.usage.storage.reading import UsageReading, UsedDay, UsedDevices

DIMENSIONS: Final = (
    "day",
    "month",
    "team",
    "project",
    "author",
    "service_account",
    "job_type",
    "model",
    "cost_centre",
    "sweep",
    "run",
)
"""By what usage may be grouped into rows."""
WASTED_STATES: Final = ("failed", "crashed", "lost")
_GB: Final = 10**9
_MJ_PER_KWH: Final = 3_600_000_000
_G_PER_KG: Final = 1000


@dataclass(frozen=True, slots=True)
class UsageSelection:
    """Which usage: None means all.

    Args:
        first, last: days, both included.
        entity_id: of this team or user.
        author_id: of runs of this user.
    """

    first: date
    last: date
    entity_id: int | None = None
    author_id: int | None = None


@dataclass(slots=True)
class Atom:
    """The smallest part of usage.

    That is: of a run, model and day; the storage of a project and day; the requests of a user or service
    account and day.
    """

    day: str
    team: int | None
    project: int | None
    author: int | None = None
    service_account: int | None = None
    job_type: str = ""
    run: int | None = None
    model: str = ""
    tracked_ms: int = 0
    host_ms: int = 0
    cpu_ms: int | None = None
    device_ms: int = 0
    unknown_use_ms: int = 0
    busy_ms: int = 0
    idle_ms: int = 0
    hung_ms: int = 0
    wasted_ms: int = 0
    failed_ms: int = 0
    energy_mj: int = 0
    measured_mj: int = 0
    unknown_energy_ms: int = 0
    storage_bytes: int = 0
    ingest_bytes: int = 0
    points: int = 0
    requests: int = 0
    lost_ms: int = 0
    costs: dict[str, int] = field(default_factory=dict)
    wasted_micro: int | None = None
    failed_micro: int | None = None
    hung_micro: int | None = None
    lost_micro: int | None = None

    def amounts(self) -> dict[str, int]:
        """Return the quantities that can have a price, by category; zeros are left out."""
        amounts = {
            TRACKED_HOURS: self.tracked_ms,
            DEVICE_HOURS: self.device_ms,
            ENERGY: self.energy_mj,
            STORAGE: self.storage_bytes,
            INGEST: self.ingest_bytes,
        }
        return {category: quantity for category, quantity in amounts.items() if quantity}


@dataclass(slots=True)
class UsageRow:
    """One row: its dimensions, and sums of figures in hours, kWh, GB and the currency."""

    key: dict[str, str | None]
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of the values of dimensions.

    Args:
        names: by kind (entity, project, user, service_account) and id.
        uids: run ids.
        cost_centres: by kind (entity or project) and id: from which day on which cost centre, ascending.
        sweeps: the names of the sweeps of runs, by the id of the run.
    """

    names: Mapping[tuple[str, int], str]
    uids: Mapping[int, str]
    cost_centres: Mapping[tuple[str, int], Sequence[tuple[str, str | None]]]
    sweeps: Mapping[int, str] = field(default_factory=dict)

    def of(self, atom: Atom, dimension: str) -> str | None:
        """The value of a dimension of an atom; None if it has none."""
        if dimension == "day":
            return atom.day
        if dimension == "month":
            return atom.day[:7]
        if dimension in ("job_type", "model"):
            return str(getattr(atom, dimension))
        if dimension == "cost_centre":
            return self._cost_centre("project", atom.project, atom.day) or self._cost_centre(
                "entity", atom.team, atom.day
            )
        if dimension == "sweep":
            return None if atom.run is None else self.sweeps.get(atom.run)
        number: int | None = getattr(atom, dimension)
        if number is None:
            return None
        if dimension == "run":
            return self.uids.get(number, f"deleted run #{number}")
        kind = {"team": "entity", "author": "user"}.get(dimension, dimension)
        return self.names.get((kind, number), f"deleted {kind} #{number}")

    def _cost_centre(self, kind: str, number: int | None, day: str) -> str | None:
        assignments = () if number is None else self.cost_centres.get((kind, number), ())
        return next((code for valid_from, code in reversed(assignments) if valid_from <= day), None)


def atoms(metadata_store: MetadataStore, settings: UsageSettings, selection: UsageSelection) -> list[Atom]:
    """The usage of a range of days, with its cost."""
    used = _used_atoms(metadata_store, settings, selection)
    calendar = settings.calendar
    from_ms, until_ms = calendar.day(selection.first).start_ms, calendar.day(selection.last).end_ms
    spans = metadata_store.usage.reading.lost_time(from_ms, until_ms)
    share_lost_time(used, lost_by_day(spans, calendar, selection.first, selection.last))
    for atom, priced in charges_of(used, metadata_store):
        if priced.amount_micro is not None:
            atom.costs[priced.used.category] = priced.amount_micro
            if priced.used.category == DEVICE_HOURS and priced.price_micro is not None:
                month = Month.of(priced.used.day)
                atom.wasted_micro = cost(atom.wasted_ms, DEVICE_HOURS, month, priced.price_micro)
                atom.failed_micro = cost(atom.failed_ms, DEVICE_HOURS, month, priced.price_micro)
                atom.lost_micro = cost(atom.lost_ms, DEVICE_HOURS, month, priced.price_micro)
                atom.hung_micro = cost(atom.hung_ms, DEVICE_HOURS, month, priced.price_micro)
    return [atom for atom in used if _fits(atom, selection)]


def charged(
    metadata_store: MetadataStore, settings: UsageSettings, month: Month
) -> Iterator[tuple[Atom, Charge]]:
    """All charges of a month, each with the usage that it is for."""
    used = _used_atoms(metadata_store, settings, UsageSelection(month.first, month.last))
    return charges_of(used, metadata_store)


def _used_atoms(
    metadata_store: MetadataStore, settings: UsageSettings, selection: UsageSelection
) -> list[Atom]:
    # From the first of the month on: what is included is used up in the order of the days.
    first, last = selection.first.replace(day=1).isoformat(), selection.last.isoformat()
    reading = metadata_store.usage.reading
    days = {(row.run_id, row.day): row for row in reading.run_days(first, last)}
    used = [_of_run(row) for row in days.values()]
    by_run = {(atom.run, atom.day): atom for atom in used}
    for (run_id, day), energy in reading.host_energy(first, last).items():
        if (run_id, day) in by_run:
            _add_energy(by_run[run_id, day], energy, energy, settings)
    for key, cpu_ms in reading.cpu_time(first, last).items():
        if key in by_run:
            by_run[key].cpu_ms = cpu_ms
    for devices in reading.devices(first, last):
        owner = days.get((devices.run_id, devices.day))
        if owner is not None:
            used.append(_of_devices(owner, devices, settings))
    for received in reading.received(first, last):
        atom = by_run.get((received.run_id, received.day))
        if atom is None:
            atom = Atom(
                received.day,
                received.entity_id,
                received.project_id,
                received.author_id,
                received.service_account_id,
                received.job_type or "",
                received.run_id,
            )
            used.append(atom)
        atom.ingest_bytes += received.bytes
        atom.points += received.points
    used.extend(_of_no_run(reading, first, last))
    return used


def _of_no_run(reading: UsageReading, first: str, last: str) -> Iterator[Atom]:
    """Yield the storage of projects, and the requests of users and service accounts."""
    for storage_row in reading.storage(first, last):
        yield Atom(
            storage_row.day, storage_row.entity_id, storage_row.project_id, storage_bytes=storage_row.bytes
        )
    for counted in reading.requests(first, last):
        user_id, account_id = (
            counted.owner_id if counted.owner_kind == kind else None for kind in ("user", "service_account")
        )
        yield Atom(counted.day, counted.team_id, None, user_id, account_id, requests=counted.requests)


def _fits(atom: Atom, selection: UsageSelection) -> bool:
    return (
        atom.day >= selection.first.isoformat()
        and (selection.entity_id is None or atom.team == selection.entity_id)
        and (selection.author_id is None or atom.author == selection.author_id)
    )


def _of_run(row: UsedDay) -> Atom:
    return Atom(
        row.day,
        row.entity_id,
        row.project_id,
        row.author_id,
        row.service_account_id,
        row.job_type,
        row.run_id,
        tracked_ms=row.tracked_ms,
        host_ms=row.host_ms,
    )


def _of_devices(owner: UsedDay, devices: UsedDevices, settings: UsageSettings) -> Atom:
    atom = _of_run(owner)
    atom.tracked_ms = atom.host_ms = 0
    atom.model = devices.model or "unknown"
    if devices.used is None and not settings.charge_unknown_use:
        atom.unknown_use_ms = devices.share_ms
        return atom
    atom.device_ms = devices.share_ms
    atom.busy_ms = devices.busy_ms
    atom.idle_ms = devices.idle_ms
    atom.failed_ms = devices.share_ms if owner.state in WASTED_STATES else 0
    atom.hung_ms = 0 if atom.failed_ms else devices.hung_ms  # so that failed, hung and idle time add up
    atom.wasted_ms = atom.failed_ms or devices.idle_ms + devices.hung_ms
    atom.unknown_energy_ms = devices.unknown_ms
    _add_energy(atom, devices.measured_mj + devices.estimated_mj, devices.measured_mj, settings)
    return atom


def _add_energy(atom: Atom, energy_mj: int, measured_mj: int, settings: UsageSettings) -> None:
    factor = Fraction(settings.pue).limit_denominator(10_000)
    atom.energy_mj += round(energy_mj * factor)
    atom.measured_mj += round(measured_mj * factor)


def charges_of(usage: Sequence[Atom], metadata_store: MetadataStore) -> Iterator[tuple[Atom, Charge]]:
    """Yield the charges of each atom; each team's or user's included amounts of a month are used up first."""
    prices = price_list(metadata_store)
    by_account: dict[tuple[int | None, str, str], list[UsedAmount]] = defaultdict(list)
    for number, atom in enumerate(usage):
        for category, quantity in atom.amounts().items():
            model = atom.model if category == DEVICE_HOURS else ""
            used = UsedAmount(date.fromisoformat(atom.day), category, quantity, model, (number,))
            by_account[atom.team, category, atom.day[:7]].append(used)
    included = included_amounts(metadata_store)
    for (team, _, name), parts in by_account.items():
        month = Month.named(name)
        for part in charge(parts, month, included(team, month), prices):
            yield usage[_number(part.used)], part


def _number(used: UsedAmount) -> int:
    (number,) = used.owner
    assert isinstance(number, int)
    return number


def price_list(metadata_store: MetadataStore) -> PriceList:
    """The prices as they are now."""
    return PriceList(
        BillingRate(
            row.id,
            row.category,
            row.device_glob,
            row.price_micro,
            date.fromisoformat(row.valid_from),
            None if row.valid_to is None else date.fromisoformat(row.valid_to),
        )
        for row in metadata_store.usage.rates.all()
    )


def included_amounts(
    metadata_store: MetadataStore,
) -> Callable[[int | None, Month], Callable[[str], float]]:
    """Return a look-up of included units by team, month and category: of the plan on the first day."""
    plans = {plan.name: plan for plan in metadata_store.usage.plans.all()}
    assigned = metadata_store.usage.plans.assigned()

    def of(team: int | None, month: Month) -> Callable[[str], float]:
        mine = [
            plan.plan
            for plan in assigned
            if plan.entity_id == team and plan.valid_from <= month.first.isoformat()
        ]
        limits = plans[mine[-1]].limits if mine else ()
        included = {limit.category: limit.included for limit in limits}
        return lambda category: included.get(category, 0.0)

    return of


def rows(
    used: Iterable[Atom],
    by: Sequence[str],
    labels: Labels,
    settings: UsageSettings,
) -> list[UsageRow]:
    """The atoms in rows by some dimensions, in their order.

    By model, a project has several rows: what belongs to no device is in the first of them only.
    """
    groups: dict[tuple[str | None, ...], list[Atom]] = defaultdict(list)
    for atom in used:
        groups[tuple(labels.of(atom, name) for name in by)].append(atom)
    if "model" in by:
        groups = _with_first_model(groups, by.index("model"))
    ordered = sorted(
        groups.items(), key=lambda item: tuple((value is None, value or "") for value in item[0])
    )
    return [UsageRow(dict(zip(by, key, strict=True)), figures(of_key, settings)) for key, of_key in ordered]


def _with_first_model(
    groups: Mapping[tuple[str | None, ...], list[Atom]], position: int
) -> dict[tuple[str | None, ...], list[Atom]]:
    first: dict[tuple[str | None, ...], str] = {}
    for key in groups:
        other_parts, model = (*key[:position], *key[position + 1 :]), key[position]
        if model and (other_parts not in first or model < first[other_parts]):
            first[other_parts] = model
    merged: dict[tuple[str | None, ...], list[Atom]] = defaultdict(list)
    for key, of_key in groups.items():
        model = key[position] or first.get((*key[:position], *key[position + 1 :]), "")
        merged_key = (*key[:position], model, *key[position + 1 :])
        merged[merged_key] += of_key
    return merged


def figures(of: Sequence[Atom], settings: UsageSettings) -> dict[str, Any]:
    """Sums of atoms. What is not known is None."""
    energy = sum(atom.energy_mj for atom in of)
    measured = sum(atom.measured_mj for atom in of)
    unknown_ms = sum(atom.unknown_energy_ms for atom in of)
    kwh = energy / _MJ_PER_KWH if energy or not unknown_ms else None
    grams = settings.co2_g_per_kwh
    last_day = max((atom.day for atom in of if atom.storage_bytes), default="")
    return {
        "runs": len({atom.run for atom in of if atom.tracked_ms or atom.ingest_bytes}),
        "tracked_hours": sum(atom.tracked_ms for atom in of) / HOUR_MS,
        "host_hours": sum(atom.host_ms for atom in of) / HOUR_MS,
        "cpu_hours": _hours(atom.cpu_ms for atom in of),
        "device_hours": sum(atom.device_ms for atom in of) / HOUR_MS,
        "device_unknown_use_hours": sum(atom.unknown_use_ms for atom in of) / HOUR_MS,
        "device_busy_hours": sum(atom.busy_ms for atom in of) / HOUR_MS,
        "device_idle_hours": sum(atom.idle_ms for atom in of) / HOUR_MS,
        "device_hung_hours": sum(atom.hung_ms for atom in of) / HOUR_MS,
        "device_failed_hours": sum(atom.failed_ms for atom in of) / HOUR_MS,
        "device_wasted_hours": sum(atom.wasted_ms for atom in of) / HOUR_MS,
        "device_lost_hours": sum(atom.lost_ms for atom in of) / HOUR_MS,
        "energy_kwh": kwh,
        "energy_measured_share": measured / energy if energy else None,
        "energy_unknown_hours": unknown_ms / HOUR_MS,
        "co2_kg": None if grams is None or kwh is None else kwh * grams / _G_PER_KG,
        "storage_gb_month": float(
            sum(
                (
                    Fraction(atom.storage_bytes, _GB * Month.named(atom.day[:7]).days)
                    for atom in of
                    if atom.storage_bytes
                ),
                Fraction(0),
            )
        ),
        "storage_bytes_end": sum(atom.storage_bytes for atom in of if atom.day == last_day),
        "ingest_gb": sum(atom.ingest_bytes for atom in of) / _GB,
        "points": sum(atom.points for atom in of),
        "requests": sum(atom.requests for atom in of),
        "cost": _money(amount for atom in of for amount in atom.costs.values()),
        "wasted": _money(atom.wasted_micro for atom in of),
        "wasted_failed": _money(atom.failed_micro for atom in of),
        "wasted_hung": _money(atom.hung_micro for atom in of),
        "lost": _money(atom.lost_micro for atom in of),
    }


def _hours(times: Iterable[int | None]) -> float | None:
    measured = [time for time in times if time is not None]
    return sum(measured) / HOUR_MS if measured else None


def _money(amounts: Iterable[int | None]) -> float | None:
    priced = [amount for amount in amounts if amount is not None]
    return sum(priced) / MICRO if priced else None
