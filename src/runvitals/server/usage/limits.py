"""Limits of plans: who has used how much of what, who gets a mail, and whose new runs are refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runvitals.accounts.organisation_settings import with_defaults
from runvitals.server.usage.report import Atom, Selection, atoms
from runvitals.server.usage.settings import UsageSettings
from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.alerts.outbox import Notification
from runvitals.store.metadata.usage.alerts import UsageAlert
from runvitals.store.metadata.usage.plans import ORGANISATION, Plan, PlanLimit
from runvitals.usage.charges import CATEGORIES, CHARGES, LIMITED, MICRO, STORAGE, UNITS, in_units
from runvitals.usage.days import Month

PERCENT: Final = (85, 100)
"""Percent of a limit at which administrators get a mail."""
AMOUNTS: Final = (200, 450, 700, 1000)
"""Charges of a month, in the organisation's currency, at which they get one."""
_GB: Final = 10**9
_FULL: Final = 100


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a category a team, a user or the organisation has used this month."""

    entity_id: int
    category: str
    value: float
    limit: PlanLimit | None

    @property
    def share(self) -> float | None:
        """Percent of the limit; None without a limit."""
        if self.limit is None or self.limit.limit_units is None:
            return None
        return self.value / self.limit.limit_units * _FULL if self.limit.limit_units else float(_FULL)

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
    plans = {one.name: one for one in usage.plans.all()}
    assigned: dict[int, Sequence[PlanLimit]] = {}
    for one in usage.plans.assigned():
        if one.valid_from <= day:
            assigned[one.entity_id] = plans[one.plan].limits
    storage_gb = with_defaults(metadata_store.accounts.settings.all())["storage_limit_gb"]
    default = (PlanLimit(STORAGE, 0.0, storage_gb),)

    def find(entity_id: int) -> Mapping[str, PlanLimit]:
        otherwise = () if entity_id == ORGANISATION else default
        return {limit.category: limit for limit in assigned.get(entity_id, otherwise)}

    return find


def uses(metadata_store: MetadataStore, settings: UsageSettings, now_ms: int) -> list[Use]:
    """What everyone has used this month. Of storage, what is stored now counts."""
    today = settings.calendar.date_at(now_ms)
    month = Month.of(today)
    found = atoms(metadata_store, settings, Selection(month.first, month.last))
    by_entity: dict[int, list[Atom]] = defaultdict(list, {ORGANISATION: found})
    for atom in found:
        if atom.team is not None:
            by_entity[atom.team].append(atom)
    limits = limits_of(metadata_store, today.isoformat())
    return [
        Use(entity_id, category, value, limits(entity_id).get(category))
        for entity_id, of_entity in sorted(by_entity.items())
        for category, value in _values(of_entity, month).items()
    ]


def _values(of: Sequence[Atom], month: Month) -> dict[str, float]:
    sums: dict[str, int] = dict.fromkeys(CATEGORIES, 0)
    newest = max((atom.day for atom in of if atom.storage_bytes), default="")
    for atom in of:
        for category, quantity in atom.amounts().items():
            sums[category] += quantity if category != STORAGE or atom.day == newest else 0
    values = {
        category: total / _GB if category == STORAGE else in_units(category, total, month)
        for category, total in sums.items()
    }
    charges = sum(amount for atom in of for amount in atom.costs.values())
    return {**values, CHARGES: charges / MICRO}


def check_limits(metadata_store: MetadataStore, settings: UsageSettings, now_ms: int) -> None:
    """Tell administrators of limits that were passed, once a month; refuse new runs where a plan says so.

    Called after each roll-up.
    """
    found = uses(metadata_store, settings, now_ms)
    names = metadata_store.usage.reading.names()
    period = Month.of(settings.calendar.date_at(now_ms)).name
    refused = {}
    for use in found:
        name = (
            "the organisation" if use.entity_id == ORGANISATION else names.get(("entity", use.entity_id), "?")
        )
        if use.refuses:
            administrators = (one.name for one in metadata_store.usage.alerts.receivers(use.entity_id))
            refused[use.entity_id] = (
                f"{_said(use, name, settings)}; administrators: {', '.join(administrators)}"
            )
        for kind, thresholds in _passed(use).items():
            _tell(metadata_store, use, name, kind, thresholds, period, settings, now_ms)
    metadata_store.usage.refused = refused


def _passed(use: Use) -> dict[str, list[int]]:
    share = use.share
    found = {} if share is None else {"percent": [one for one in PERCENT if share >= one]}
    if use.category == CHARGES and use.entity_id == ORGANISATION:
        found["amount"] = [one for one in AMOUNTS if use.value >= one]
    return {kind: thresholds for kind, thresholds in found.items() if thresholds}


def _tell(
    metadata_store: MetadataStore,
    use: Use,
    name: str,
    kind: str,
    thresholds: Iterable[int],
    period: str,
    settings: UsageSettings,
    now_ms: int,
) -> None:
    limit = None if use.limit is None else use.limit.limit_units
    passed = [
        UsageAlert(period, use.entity_id, use.category, kind, threshold, use.value, limit)
        for threshold in thresholds
    ]
    highest = max(one.threshold for one in passed)
    receivers = metadata_store.usage.alerts.receivers(use.entity_id)
    managers = ", ".join(one.name for one in receivers if one.manages)
    refuses = use.limit is not None and use.limit.refuse_new_runs
    then = "New runs are refused beyond the limit." if refuses else "Nothing is refused beyond the limit."
    notifications = [
        Notification(
            f"usage:{period}:{use.entity_id}:{use.category}:{kind}:{highest}:user:{one.user_id}",
            "usage.threshold",
            f"user:{one.user_id}",
            f"usage:{use.entity_id}",
            f"{_said(use, name, settings)} in {period}\n\n"
            + (
                f"You can raise the limit in the plan. {then}"
                if one.manages
                else f"{managers} can raise the limit."
            ),
            {
                "path": "/-/billing" if one.manages else "/-/settings/usage",
                "link": "Usage",
                "level": "warning",
            },
            now_ms,
        )
        for one in receivers
    ]
    metadata_store.usage.alerts.send(passed, notifications, now_ms)


def _said(use: Use, name: str, settings: UsageSettings) -> str:
    """Such as `vision has used 100.2 of 100 GB`."""
    unit = (
        settings.currency
        if use.category == CHARGES
        else "GB"
        if use.category == STORAGE
        else UNITS[use.category]
    )
    what = use.category.replace("_", " ")
    limit = None if use.limit is None else use.limit.limit_units
    if limit is None:
        return f"{name} has used {use.value:.1f} {unit} ({what})"
    return f"{name} has used {use.value:.1f} of {limit:g} {unit} ({what})"


def checked_plan(name: str, description: str, limits: Sequence[PlanLimit]) -> Plan:
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
    return Plan(name, description, tuple(limits))
