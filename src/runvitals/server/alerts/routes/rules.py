"""`/entities/{entity}/alert-rules`: rules on metrics of a team or user, and a dry run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import HTTPException, Path, Request
from pydantic import Field

from runvitals.base import deadline
from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.dry_run import MAX_RUNS, DryRun, dry_run
from runvitals.server.alerts.ready_rules import READY_RULES
from runvitals.server.alerts.rules import AlertRule, InvalidRule, rule
from runvitals.server.alerts.storage.destinations import KINDS
from runvitals.server.alerts.storage.firings import RuleCounts
from runvitals.server.alerts.storage.rules import StoredRule
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.routes.project_parameters import TheEntity
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.store.errors import NameTaken, NotFound

RuleId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_DAYS: Final = 90
DEADLINE_S: Final = 20.0
MAX_TRIED: Final = 2
TRIED: Final = threading.BoundedSemaphore(MAX_TRIED)
"""Trying a rule reads the samples of many runs."""
_SERVICES: Final = {"slack": "Slack", "webhook": "Webhook"}
"""Names of services, by kind of destination. Each destination of Apprise has a service of its own."""
_PATH: Final = "/entities/{entity}/alert-rules"

router = Router()


class RuleSchema(ResponseBody):
    """A rule of a team or user."""

    id: int
    name: str
    rule: dict[str, Any] = Field(validation_alias="definition", description="As in a file of rules.")
    enabled: bool
    muted_until_ms: int | None = Field(description="None: not muted.")
    created_ms: int
    changed_ms: int


class ListedRule(RuleSchema):
    """A rule and its state, over the series that the requester may read."""

    state: Literal["off", "ok", "pending", "firing"] = Field(
        description="`pending`: its condition holds for a series, but not for long enough yet."
    )
    firing: int = Field(description="For how many series it fires.")
    pending: int = Field(description="For how many its condition holds, but not for long enough yet.")


class RulesPage(ResponseBody):
    """The rules of a team or user, and those that are ready to be used."""

    rules: list[ListedRule]
    total: int
    next: str | None
    ready: list[dict[str, Any]] = Field(description="Rules that are ready to be used.")
    may: list[str]


class PastFiringSchema(ResponseBody):
    """A time at which the rule would have fired. `ended_ms`: None while it would fire."""

    run: str
    project: str
    key: str
    host: str
    value: float | None
    fired_ms: int
    ended_ms: int | None


class EvaluatedMetricSchema(ResponseBody):
    """A metric of a run that the rule was evaluated on."""

    run: str
    project: str
    key: str
    host: str


class DryRunSchema(ResponseBody):
    """When a rule would have fired."""

    times: int = Field(description="How often it would have fired.")
    runs: int = Field(description="On how many runs it was evaluated.")
    most_runs: int = Field(description="On how many it is at most: the newest.")
    from_ms: int
    firings: list[PastFiringSchema] = Field(description="The newest 500.")
    metrics: list[EvaluatedMetricSchema] = Field(description="Some of what it was evaluated on, to draw.")


class RuleTest(ResponseBody):
    """The result of a test of a rule."""

    target: str = Field(description="Whom a test was sent to.")


class RuleTarget(ResponseBody):
    """Whom a rule can notify."""

    target: str = Field(description="`author`, `members`, or a channel such as `slack:3`.")
    name: str


class NewRule(RequestBody):
    """A rule. `enabled`: false to keep it switched off."""

    rule: dict[str, Any] = Field(description="As in a file of rules: name, severity, condition and so on.")
    enabled: bool = True


class RuleChanges(RequestBody):
    """Changes; a field that is left out stays as it is."""

    rule: dict[str, Any] | None = None
    enabled: bool | None = None
    muted_until_ms: int | None = Field(None, ge=0, le=2**53, description="null: not muted.")


class DryRunRequest(RequestBody):
    """A rule that is not stored, and over how many past days it is evaluated."""

    rule: dict[str, Any]
    days: int = Field(7, ge=1, le=MAX_DAYS)


@router.get(_PATH, needs("automation:read"), response_model=RulesPage)
def rules(entity: TheEntity, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The rules, in the order in which they were made; with those that are ready to be used."""
    alerts = access.metadata_store.alerts
    readable = access.directory.readable_runs(requester.principal)
    counts = alerts.firings.counts(entity.id, None if readable is None else readable.projects)
    rows = sorted(alerts.rules.of_entity(entity.id), key=lambda row: row.id)

    def show(row: StoredRule) -> dict[str, Any]:
        return asdict(row) | _state(row, counts.get(row.id, RuleCounts()))

    listed = page_of("rules", rows, lambda row: row.id, page, show)
    may = access.may_list(requester, entity, frozenset((Action.AUTOMATION_MANAGE,)))
    return {**listed, "ready": READY_RULES, "may": may}


@router.post(_PATH, needs("automation:manage"), response_model=RuleSchema, status_code=201)
def create_rule(entity: TheEntity, body: NewRule, access: TheAccess, requester: TheRequester) -> StoredRule:
    """Add a rule. It is evaluated on what arrives from a few seconds later on."""
    _check_rule(body.rule, access, entity, requester)
    table, by, now_ms = access.metadata_store.alerts.rules, requester.actor, access.clock()
    return _store(lambda: table.create(entity.id, body.rule, body.enabled, by, now_ms))


@router.post(f"{_PATH}/dry-run", needs("automation:read"), response_model=DryRunSchema)
def try_rule(
    entity: TheEntity, body: DryRunRequest, access: TheAccess, requester: TheRequester, request: Request
) -> dict[str, Any]:
    """When a rule would have fired for the runs of the past days that you may read."""
    checked = _check_rule(body.rule, access, entity, requester)
    readable = access.directory.readable_runs(requester.principal)
    to_ms = access.clock()
    from_ms = to_ms - body.days * DAY_MS
    store = access.metadata_store
    result = _within_limits(
        lambda: dry_run(
            store, shared_services_of(request).sample_store, entity.id, checked, from_ms, to_ms, readable
        )
    )
    return {
        "times": len(result.firings),
        "runs": result.runs,
        "most_runs": MAX_RUNS,
        "from_ms": from_ms,
        "firings": result.firings[:500],
        "metrics": result.metrics,
    }


@router.get(f"{_PATH}/{{rule}}", needs("automation:read"), response_model=RuleSchema)
def one_rule(entity: TheEntity, rule: RuleId, access: TheAccess) -> StoredRule:
    """A rule."""
    return access.metadata_store.alerts.rules.get(entity.id, rule)


@router.patch(f"{_PATH}/{{rule}}", needs("automation:manage"), response_model=RuleSchema)
def change_rule(
    entity: TheEntity, rule: RuleId, body: RuleChanges, access: TheAccess, requester: TheRequester
) -> StoredRule:
    """Change a rule, switch it on or off, or mute it until a time. A changed rule begins anew."""
    if body.rule is not None:
        _check_rule(body.rule, access, entity, requester)
    muted = body.muted_until_ms if "muted_until_ms" in body.model_fields_set else -1
    table, by, now_ms = access.metadata_store.alerts.rules, requester.actor, access.clock()
    return _store(
        lambda: table.update(
            entity.id, rule, by, now_ms, definition=body.rule, enabled=body.enabled, muted_until_ms=muted
        )
    )


@router.delete(f"{_PATH}/{{rule}}", needs("automation:manage"), status_code=204)
def delete_rule(entity: TheEntity, rule: RuleId, access: TheAccess, requester: TheRequester) -> None:
    """Delete a rule, with its history."""
    access.metadata_store.alerts.rules.delete(entity.id, rule, requester.actor, access.clock())


@router.post(f"{_PATH}/{{rule}}/test", needs("automation:manage"), response_model=RuleTest, status_code=202)
def test_rule(
    entity: TheEntity, rule: RuleId, access: TheAccess, owner: TheOwner, request: Request
) -> RuleTest:
    """Send yourself what the rule would send."""
    stored_rule = access.metadata_store.alerts.rules.get(entity.id, rule)
    notices = shared_services_of(request).alerting.rule_notices
    sent = notices.test(stored_rule, _parse_rule(stored_rule.definition), owner.id)
    return RuleTest(target=sent.target)


def _within_limits(work: Callable[[], DryRun]) -> DryRun:
    """Try a rule, unless too many are being tried.

    Raises:
        HTTPException: too many rules are being tried, or it takes too long.
    """
    if not TRIED.acquire(blocking=False):
        raise HTTPException(429, "other rules are being tried; try again in a few seconds")
    try:
        with deadline.within(DEADLINE_S):
            return work()
    except deadline.TooSlow:
        raise HTTPException(422, "it takes too long; choose fewer days, projects or metrics") from None
    finally:
        TRIED.release()


def _state(row: StoredRule, counts: RuleCounts) -> dict[str, Any]:
    """Return the state of a rule, over the series that the requester may see."""
    if not row.enabled:
        return {"state": "off", "firing": 0, "pending": 0}
    state = "firing" if counts.firing else "pending" if counts.pending else "ok"
    return {"state": state, "firing": counts.firing, "pending": counts.pending}


def _check_rule(definition: Any, access: AccessControl, entity: Entity, requester: Requester) -> AlertRule:
    """Return a valid rule.

    Raises:
        InvalidFields: it is invalid, or notifies what its team or user does not have.
        HTTPException: 403 if it looks at all teams, and the requester does not administer the organisation.
    """
    parsed = _parse_rule(definition)
    principal = requester.principal
    if parsed.everywhere and not (isinstance(principal, User) and principal.org_admin):
        raise HTTPException(403, "only administrators of the organisation make rules about all teams")
    wrong = target_errors(access.metadata_store, entity.id, parsed.tell, "rule.tell")
    if wrong:
        raise InvalidFields(wrong)
    return parsed


def _parse_rule(definition: Any) -> AlertRule:
    try:
        return rule(definition)
    except InvalidRule as error:
        raise InvalidFields({f"rule.{name}": text for name, text in error.fields.items()}) from None


def _store(store: Callable[[], StoredRule]) -> StoredRule:
    """Store a rule. An error names its field."""
    try:
        return store()
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"rule.name": str(error)}}) from None


def target_errors(store: MetadataStore, entity_id: int, targets: Sequence[str], field: str) -> dict[str, str]:
    """Return what is wrong with targets such as `slack:3`: the team or user does not have them."""
    wrong = {}
    for index, target in enumerate(targets):
        kind, _, number = target.partition(":")
        try:
            if kind in KINDS:
                store.alerts.destinations.get(kind, entity_id, int(number))
        except NotFound as error:
            wrong[f"{field}[{index}]"] = str(error)
    return wrong


def targets_of(store: MetadataStore, team_id: int) -> list[RuleTarget]:
    """Return what rules of a team can notify."""
    channels = [
        (f"{kind}:{row.id}", f"{_SERVICES.get(kind) or row.shown}: {row.name}")
        for kind in KINDS
        for row in store.alerts.destinations.of_team(kind, team_id)
    ]
    users = [("author", "The author of the run"), ("members", "All members of the team")]
    return [RuleTarget(target=target, name=name) for target, name in (*users, *channels)]
