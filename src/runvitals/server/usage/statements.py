"""Drafts of statements, which are computed until they are issued; issuing and cancelling them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from runvitals.model.durations import HOUR_MS
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.clock import Due
from runvitals.server.events.outbox import Notification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.usage.days import Month
from runvitals.server.usage.report import Labels, charged
from runvitals.server.usage.settings import UsageSettings, usage_settings
from runvitals.server.usage.statement_lines import (
    KeyedLine,
    PricedUse,
    late_lines,
    late_text,
    money,
    negate,
    number_text,
    statement_lines,
)
from runvitals.server.usage.storage.statements import Draft, Issuing, Scope, Statement

DRAFTS_HOUR: Final = 6
"""The hour of the first day of a month from which the month before has drafts."""
_LATE_MONTHS: Final = 3
"""Samples may come a month late, after the statements of two months were issued."""
_EVERY_MS: Final = HOUR_MS
_NO_ENTITY: Final = 0
_PROJECTS: Final = "projects"
_COMPUTED_WITH: Final = ("pue", "charge_unknown_use")
Tell = Callable[[Statement], None]


def _nobody(_: Statement) -> None:
    """There is nobody else to tell."""


class Statements:
    """The statements of a server.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._metadata_store = metadata_store
        self._table = metadata_store.usage.statements
        self._clock = clock
        self._update = Due()

    def update(self, settings: UsageSettings, now_ms: int) -> None:
        """Compute the drafts anew, at most once an hour: called after each roll-up."""
        if not self._update.at(now_ms):
            return
        self._update.wait(now_ms, _EVERY_MS)
        periods = self._table.draft_periods()
        newest = _newest_period(settings, now_ms)
        for period in sorted({*periods, newest}):
            self.compute(Month.named(period))

    def compute(self, month: Month) -> None:
        """Compute the drafts of a month anew."""
        settings = usage_settings(self._metadata_store)
        drafts = _drafts(self._metadata_store, settings, month)
        self._table.put_drafts(month.name, drafts, self._year(settings), self._clock())

    def issue(self, draft: Statement, by: Actor, tell: Tell = _nobody) -> Statement:
        """Issue a draft with what it is now, and tell the billing administrators.

        Args:
            tell: tells others, in the same transaction.

        Raises:
            NotFound: nothing is charged any more.
            StatementConflict: it was issued meanwhile.
        """
        self.compute(Month.named(draft.period))
        printed, how = self._settlement(draft), self._issuing(by)

        def work() -> Statement:
            issued = self._table.issue(draft.id, printed, how)
            tell(issued)
            return issued

        return self._metadata_store.in_one_transaction(work)

    def cancel(self, number: str, reason: str, by: Actor, tell: Tell = _nobody) -> Statement:
        """Cancel a statement by another one. The month gets a draft again, which will correct it.

        Args:
            tell: as of `issue`.

        Raises:
            NotFound: there is no such statement.
            StatementConflict: it was not issued, or is cancelled already.
        """
        how = self._issuing(by)

        def work() -> Statement:
            cancelling = self._table.cancel(number, negate, reason, how)
            tell(cancelling)
            return cancelling

        cancelling = self._metadata_store.in_one_transaction(work)
        self.compute(Month.named(cancelling.period))
        return cancelling

    def _settlement(self, draft: Statement) -> dict[str, Any]:
        centres = self._metadata_store.usage.cost_centres.all()
        centre = next(
            (candidate for candidate in centres if draft.scope == ("cost_centre", candidate.id)), None
        )
        settings = with_defaults(self._metadata_store.accounts.settings.all())
        return {
            "organisation": settings["name"],
            "time_zone": settings["time_zone"],
            **self._metadata_store.usage.documents.get("settlement"),
            "paid_by": None
            if centre is None
            else {
                name: getattr(centre, name)
                for name in ("code", "name", "address", "contact", "purchase_order")
            },
        }

    def _issuing(self, by: Actor) -> Issuing:
        settings, now_ms = usage_settings(self._metadata_store), self._clock()
        year = self._year(settings)
        receivers = self._metadata_store.usage.alerts.receivers(_NO_ENTITY, "billing")
        ids = [receiver.user_id for receiver in receivers]
        announce = partial(_notifications, receivers=ids, now_ms=now_ms)
        return Issuing(by, now_ms, year, partial(number_text, year), announce)

    def _year(self, settings: UsageSettings) -> int:
        return settings.calendar.date_at(self._clock()).year


def _notifications(issued: Statement, receivers: Sequence[int], now_ms: int) -> list[Notification]:
    total = f"{money(issued.total_micro, issued.currency)} {issued.currency}"
    text = f"Statement {issued.number} of {issued.scope_name} for {issued.period}: {total}"
    why = f"\n\nIt cancels another statement: {issued.reason}" if issued.state == "cancellation" else ""
    return [
        Notification(
            f"statement:{issued.number}:user:{user_id}",
            "billing.statement",
            f"user:{user_id}",
            f"statement:{issued.number}",
            f"{text}{why}",
            {"path": "/-/billing/statements", "link": "Statements", "level": "info"},
            now_ms,
        )
        for user_id in receivers
    ]


def _newest_period(settings: UsageSettings, now_ms: int) -> str:
    """The last month whose drafts are due."""
    zone = ZoneInfo(settings.calendar.zone)
    now = datetime.fromtimestamp(now_ms / 1000, timezone.utc).astimezone(zone)
    month = Month.of(now.date()).previous
    return (month.previous if now.day == 1 and now.hour < DRAFTS_HOUR else month).name


def _drafts(metadata_store: MetadataStore, settings: UsageSettings, month: Month) -> list[Draft]:
    """Draft the statements of a month: its usage, and what arrived late for months before."""
    of_scopes = _Scopes(metadata_store)
    lines: dict[Scope, list[KeyedLine]] = defaultdict(list)
    for scope, uses in of_scopes.priced_uses(settings, month).items():
        lines[scope] += statement_lines(uses, month, settings.currency)
    for scope, late in _late(metadata_store, settings, month, of_scopes).items():
        lines[scope] += late
    return [of_scopes.draft(scope, of_scope, settings) for scope, of_scope in sorted(lines.items())]


def _late(
    metadata_store: MetadataStore, settings: UsageSettings, month: Month, of_scopes: _Scopes
) -> dict[Scope, list[KeyedLine]]:
    earliest = month
    for _ in range(_LATE_MONTHS):
        earliest = earliest.previous
    statements = metadata_store.usage.statements.issued_since(earliest.name)
    billed: dict[tuple[Scope, str], list[KeyedLine]] = defaultdict(list)
    for statement, lines in statements:
        projects = statement.settlement[_PROJECTS]
        for line in lines:
            key = projects.get(line.project), line.category, line.model
            of_month = line.text.removeprefix(late_text("")) if line.text else statement.period
            billed[statement.scope, of_month].append(KeyedLine(key, line))
    late: dict[Scope, list[KeyedLine]] = defaultdict(list)
    computed: dict[tuple[object, ...], Mapping[Scope, list[PricedUse]]] = {}
    for statement, _ in sorted(statements, key=lambda pair: pair[0].period):
        if statement.period >= month.name:
            continue
        before = Month.named(statement.period)
        then = {name: statement.settlement[name] for name in _COMPUTED_WITH}
        about = (statement.period, *then.values())
        if about not in computed:
            computed[about] = of_scopes.priced_uses(replace(settings, **then), before)
        now = statement_lines(computed[about].get(statement.scope, ()), before, statement.currency)
        late[statement.scope] += late_lines(now, billed[statement.scope, statement.period], statement.period)
    return late


class _Scopes:
    """Who pays for what: a cost centre, otherwise the team or user."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self._metadata_store = metadata_store
        reading = metadata_store.usage.reading
        self._names = reading.names()
        self._labels = Labels(self._names, {}, reading.cost_centres())
        self._centres = {centre.code: centre.id for centre in metadata_store.usage.cost_centres.all()}
        self._codes = {number: code for code, number in self._centres.items()}
        self._owners: dict[int | None, str] = {}

    def priced_uses(self, settings: UsageSettings, month: Month) -> dict[Scope, list[PricedUse]]:
        """The usage of a month that has a price."""
        priced: dict[Scope, list[PricedUse]] = defaultdict(list)
        for atom, charge in charged(self._metadata_store, settings, month):
            if charge.price_micro is None or charge.amount_micro is None:
                continue
            code = self._labels.of(atom, "cost_centre")
            scope = (
                ("entity", atom.team or _NO_ENTITY) if code is None else ("cost_centre", self._centres[code])
            )
            self._owners[atom.project] = self._labels.of(atom, "team") or "no team"
            key = atom.project, charge.used.category, charge.used.model
            use = PricedUse(
                key, charge.used.quantity, charge.included, charge.price_micro, charge.amount_micro
            )
            priced[scope].append(use)
        return priced

    def draft(self, scope: Scope, lines: Sequence[KeyedLine], settings: UsageSettings) -> Draft:
        projects = self._project_names({keyed.key[0] for keyed in lines})
        named_lines = [replace(keyed.line, project=projects[keyed.key[0]]) for keyed in lines]
        named_lines.sort(
            key=lambda line: (line.text, line.project, line.category, line.model, line.price_micro)
        )
        name = self._codes[scope[1]] if scope[0] == "cost_centre" else self._entity(scope[1])
        computed_with = {name: getattr(settings, name) for name in _COMPUTED_WITH}
        ids = {text: number for number, text in projects.items()}
        return Draft(scope, name, settings.currency, named_lines, {_PROJECTS: ids, **computed_with})

    def _entity(self, number: int) -> str:
        return "no team" if number == _NO_ENTITY else self._names.get(("entity", number), f"team #{number}")

    def _project_names(self, numbers: set[int | None]) -> dict[int | None, str]:
        """Such as `vision/digits`; projects with the same one get their number too."""
        names: dict[int | None, str] = {}
        for number in sorted(numbers, key=lambda project_id: project_id or 0):
            project = "no project" if number is None else self._names.get(("project", number), f"#{number}")
            name = f"{self._owners.get(number, 'no team')}/{project}"
            names[number] = f"{name} #{number}" if name in names.values() else name
        return names
