"""Limits of plans, and who has used how much of what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.usage.charges import CATEGORIES, CHARGES, LIMITED, MICRO, STORAGE, expect, in_units
from runvitals.server.usage.days import Month
from runvitals.server.usage.report import Atom, UsageSelection, atoms
from runvitals.server.usage.settings import UsageSettings
from runvitals.server.usage.storage.plans import ORGANISATION, PlanLimit, UsagePlan

_GB: Final = 10**9
_FULL: Final = 100


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a category a team, a user or the organisation has used this month.

    Args:
        value: None for charges if nothing that was used has a price.
        largest: the ids of projects, and what each has used, the largest first.
        expected: how much it will be at the end of the month, if it goes on so; None: not known. Storage is
            as it is.
    """

    entity_id: int
    category: str
    value: float | None
    limit: PlanLimit | None
    largest: tuple[tuple[int | None, float], ...] = ()
    expected: float | None = None

    @property
    def quantity(self) -> float:
        """How much counts against the limit."""
        return self.value or 0.0

    @property
    def limit_units(self) -> float | None:
        """The limit; None: unlimited."""
        return None if self.limit is None else self.limit.limit_units

    @property
    def share(self) -> float | None:
        """Percent of the limit; None without a limit."""
        if self.limit is None or self.limit.limit_units is None:
            return None
        return self.quantity / self.limit.limit_units * _FULL if self.limit.limit_units else float(_FULL)

    @property
    def refuses(self) -> bool:
        """Whether new runs are refused."""
        share = self.share
        return self.limit is not None and self.limit.refuse_new_runs and share is not None and share >= _FULL


def limits_of(metadata_store: MetadataStore, day: str) -> Callable[[int], Mapping[str, PlanLimit]]:
    """The limits on a day by category, of a team or user, or of the organisation.

    Without a plan, a team or user may store as much as the setting `storage_limit_gb` says.
    """
    usage = metadata_store.usage
    plans = {assignment.name: assignment for assignment in usage.plans.all()}
    assigned: dict[int, Sequence[PlanLimit]] = {}
    for assignment in usage.plans.assigned():
        if assignment.valid_from <= day:
            assigned[assignment.entity_id] = plans[assignment.plan].limits
    storage_gb = with_defaults(metadata_store.accounts.settings.all())["storage_limit_gb"]
    default = (PlanLimit(STORAGE, 0.0, storage_gb),)

    def find(entity_id: int) -> Mapping[str, PlanLimit]:
        otherwise = () if entity_id == ORGANISATION else default
        return {limit.category: limit for limit in assigned.get(entity_id, otherwise)}

    return find


def uses(metadata_store: MetadataStore, settings: UsageSettings, now_ms: int) -> list[Use]:
    """Return the use of each entity and category this month; of storage, what is stored now."""
    today = settings.calendar.date_at(now_ms)
    month = Month.of(today)
    use_atoms = atoms(metadata_store, settings, UsageSelection(month.first, month.last))
    by_entity: dict[int, list[Atom]] = defaultdict(list, {ORGANISATION: use_atoms})
    for atom in use_atoms:
        if atom.team is not None:
            by_entity[atom.team].append(atom)
    limits = limits_of(metadata_store, today.isoformat())
    entity_uses = []
    for entity_id, of_entity in sorted(by_entity.items()):
        projects = _by_project(of_entity, month)
        for category, value in _values(of_entity, month).items():
            used = (
                (number, of_project)
                for number, values in projects.items()
                if (of_project := values[category])
            )
            largest = tuple(sorted(used, key=lambda pair: -pair[1]))
            limit = limits(entity_id).get(category)
            expected = None
            if value is not None and category != STORAGE:
                expected = expect(value, settings.calendar, month, now_ms)
            entity_uses.append(Use(entity_id, category, value, limit, largest, expected))
    return entity_uses


def _by_project(of: Sequence[Atom], month: Month) -> dict[int | None, dict[str, float | None]]:
    by_project: dict[int | None, list[Atom]] = defaultdict(list)
    for atom in of:
        by_project[atom.project].append(atom)
    newest = _newest_snapshot(of)
    return {number: _values(mine, month, newest) for number, mine in by_project.items()}


def _newest_snapshot(of: Sequence[Atom]) -> str:
    return max((atom.day for atom in of if atom.storage_bytes), default="")


def _values(of: Sequence[Atom], month: Month, newest: str | None = None) -> dict[str, float | None]:
    """Return the amounts by category, in its unit; charges are None if nothing has a price.

    Args:
        newest: the day whose storage counts; None: the last one with any.
    """
    sums: dict[str, int] = dict.fromkeys(CATEGORIES, 0)
    newest = _newest_snapshot(of) if newest is None else newest
    for atom in of:
        for category, quantity in atom.amounts().items():
            sums[category] += quantity if category != STORAGE or atom.day == newest else 0
    values: dict[str, float | None] = {
        category: total / _GB if category == STORAGE else in_units(category, total, month)
        for category, total in sums.items()
    }
    costs = [amount for atom in of for amount in atom.costs.values()]
    return {**values, CHARGES: sum(costs) / MICRO if costs else None}


def checked_plan(name: str, description: str, limits: Sequence[PlanLimit]) -> UsagePlan:
    """A plan.

    Raises:
        ValueError: an unknown category, one that occurs twice, or a negative amount.
    """
    for limit in limits:
        if limit.category not in LIMITED:
            raise ValueError(f"unknown category {limit.category!r}; expected one of {', '.join(LIMITED)}")
        if limit.included < 0 or (limit.limit_units is not None and limit.limit_units < 0):
            raise ValueError(f"{limit.category}: expected amounts of at least 0")
    if len({limit.category for limit in limits}) < len(limits):
        raise ValueError("a category occurs twice")
    return UsagePlan(name, description, tuple(limits))
