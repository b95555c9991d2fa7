"""`/entities/{entity}/alert-rules`: rules on metrics of a team or user, a dry run, and when they fired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from runvitals.accounts.actions import Action
from runvitals.accounts.resources import Entity
from runvitals.alerts.dry_run import MAX_RUNS, dry_run
from runvitals.alerts.ready_rules import READY_RULES
from runvitals.alerts.rules import AlertRule, InvalidRule, rule
from runvitals.model.durations import DAY_MS
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.api.accounts.own_account import TheOwner
from runvitals.server.api.entities.parameters import EntityName
from runvitals.server.api.listing import ThePage, page_of
from runvitals.server.errors import DetailedError, InvalidFields
from runvitals.store.errors import NameTaken, UnknownAccount
from runvitals.store.metadata.alerts.rules import Firing, StoredRule

RuleId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_DAYS: Final = 90
_PATH: Final = "/entities/{entity}/alert-rules"

router = APIRouter()


class NewRule(BaseModel):
    """A rule. `enabled`: false to keep it switched off."""

    model_config = ConfigDict(extra="forbid")

    rule: dict[str, Any] = Field(description="As in a file of rules: name, severity, condition and so on.")
    enabled: bool = True


class RuleChanges(BaseModel):
    """What is left out does not change."""

    model_config = ConfigDict(extra="forbid")

    rule: dict[str, Any] | None = None
    enabled: bool | None = None
    muted_until_ms: int | None = Field(None, ge=0, le=2**53, description="null: not muted.")


class DryRunRequest(BaseModel):
    """A rule that is not stored, and over how many past days it is evaluated."""

    model_config = ConfigDict(extra="forbid")

    rule: dict[str, Any]
    days: int = Field(7, ge=1, le=MAX_DAYS)


def the_entity(entity: EntityName, access: TheAccess, requester: TheRequester) -> Entity:
    """The team or user of the path; `needs` has checked what the requester may do with it.

    Raises:
        HTTPException: 404 if there is none.
    """
    found = access.directory.entity_named(entity)
    if found is None:
        access.hide(requester, f"team or user {entity!r}")
    return found


TheEntity = Annotated[Entity, Depends(the_entity)]


@router.get(_PATH, dependencies=[needs("automation:read")])
def rules(entity: TheEntity, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The rules, by name; with those that are ready to be used."""
    stored = access.metadata_store.alerts.rules.of_entity(entity.id)
    listed = page_of("rules", sorted(stored, key=lambda one: one.id), lambda one: one.id, page, rule_json)
    may = access.may_list(requester, entity, frozenset((Action.AUTOMATION_MANAGE,)))
    return {**listed, "ready": list(READY_RULES), "may": may}


@router.post(_PATH, status_code=201, dependencies=[needs("automation:manage")])
def create_rule(
    entity: TheEntity, body: NewRule, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Add a rule. It is evaluated on what arrives from a few seconds later on."""
    _checked(body.rule, access, entity)
    table, by, now_ms = access.metadata_store.alerts.rules, requester.actor, access.clock()
    return _stored(lambda: table.create(entity.id, body.rule, body.enabled, by, now_ms))


@router.post(f"{_PATH}/dry-run", dependencies=[needs("automation:read")])
def try_rule(
    entity: TheEntity, body: DryRunRequest, access: TheAccess, requester: TheRequester, request: Request
) -> dict[str, Any]:
    """When a rule would have fired for the runs of the past days that you may read."""
    checked = _checked(body.rule, access, entity)
    readable = access.directory.readable_runs(requester.principal)
    now_ms = access.clock()
    found = dry_run(
        access.metadata_store,
        request.app.state.sample_store,
        entity.id,
        checked,
        now_ms - body.days * DAY_MS,
        now_ms,
        readable,
    )
    return {
        "times": len(found.firings),
        "runs": found.runs,
        "most_runs": MAX_RUNS,
        "firings": [
            {
                "run": one.run,
                "project": one.project,
                "key": one.key,
                "host": one.host,
                "value": one.value,
                "fired_ms": one.fired_ms,
                "ended_ms": one.ended_ms,
            }
            for one in found.firings[:500]
        ],
    }


@router.get(f"{_PATH}/history", dependencies=[needs("automation:read")])
def history(
    entity: TheEntity,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    project: Annotated[str | None, Query(max_length=256)] = None,
    firing: bool = False,
) -> dict[str, Any]:
    """When rules fired, for which series, and who was notified; the newest first."""
    readable = access.directory.readable_runs(requester.principal)
    number = None
    if project is not None:
        found = access.directory.project_named(entity.id, project)
        number = -1 if found is None else found.id
    table = access.metadata_store.alerts.rules
    projects = None if readable is None else readable.projects
    rows = table.firings(
        entity.id, page.limit + 1, page.after_id or None, None, number, projects, only_open=firing
    )
    shown = rows[: page.limit]
    return {
        "firings": [firing_json(row) for row in shown],
        "total": table.count_firings(entity.id, number, projects, only_open=firing),
        "next": str(shown[-1].id) if len(rows) > len(shown) else None,
    }


@router.get(f"{_PATH}/{{rule}}", dependencies=[needs("automation:read")])
def one_rule(entity: TheEntity, rule: RuleId, access: TheAccess) -> dict[str, Any]:
    """A rule."""
    return rule_json(access.metadata_store.alerts.rules.get(entity.id, rule))


@router.patch(f"{_PATH}/{{rule}}", dependencies=[needs("automation:manage")])
def change_rule(
    entity: TheEntity, rule: RuleId, body: RuleChanges, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Change a rule, switch it on or off, or mute it until a time. A changed rule begins anew."""
    if body.rule is not None:
        _checked(body.rule, access, entity)
    muted = body.muted_until_ms if "muted_until_ms" in body.model_fields_set else -1
    table, by, now_ms = access.metadata_store.alerts.rules, requester.actor, access.clock()
    return _stored(
        lambda: table.update(
            entity.id, rule, by, now_ms, definition=body.rule, enabled=body.enabled, muted_until_ms=muted
        )
    )


@router.delete(f"{_PATH}/{{rule}}", status_code=204, dependencies=[needs("automation:manage")])
def delete_rule(entity: TheEntity, rule: RuleId, access: TheAccess, requester: TheRequester) -> None:
    """Delete a rule, with its history."""
    access.metadata_store.alerts.rules.delete(entity.id, rule, requester.actor, access.clock())


@router.post(f"{_PATH}/{{rule}}/test", status_code=202, dependencies=[needs("automation:manage")])
def test_rule(
    entity: TheEntity, rule: RuleId, access: TheAccess, owner: TheOwner, request: Request
) -> dict[str, Any]:
    """Send yourself what the rule would send."""
    stored = access.metadata_store.alerts.rules.get(entity.id, rule)
    notices = request.app.state.shared_server.alerting.rule_notices
    sent = notices.test(stored, _parsed(stored.definition), owner.id)
    return {"target": sent.target}


def rule_json(stored: StoredRule) -> dict[str, Any]:
    """A rule in an answer."""
    return {
        "id": stored.id,
        "name": stored.name,
        "rule": dict(stored.definition),
        "enabled": stored.enabled,
        "muted_until_ms": stored.muted_until_ms,
        "created_ms": stored.created_ms,
        "changed_ms": stored.changed_ms,
    }


def firing_json(row: Firing) -> dict[str, Any]:
    """A time at which a rule fired, in an answer."""
    return {
        "id": row.id,
        "rule": row.rule,
        "run": row.run,
        "project": row.project,
        "key": row.key,
        "host": row.host,
        "severity": row.severity,
        "value": row.value,
        "fired_ms": row.fired_ms,
        "ended_ms": row.ended_ms,
        "notified": row.told,
    }


def _checked(definition: Any, access: AccessControl, entity: Entity) -> AlertRule:
    """A valid rule.

    Raises:
        InvalidFields: it is invalid, or notifies what its team or user does not have.
    """
    found = _parsed(definition)
    accounts = access.accounts
    wrong = {}
    for index, target in enumerate(found.tell):
        kind, _, number = target.partition(":")
        try:
            if kind == "slack":
                accounts.slack_destinations.sealed(entity.id, int(number))
            elif kind == "webhook":
                accounts.webhooks.get(entity.id, int(number))
        except UnknownAccount as error:
            wrong[f"rule.tell[{index}]"] = str(error)
    if wrong:
        raise InvalidFields(wrong)
    return found


def _parsed(definition: Any) -> AlertRule:
    try:
        return rule(definition)
    except InvalidRule as error:
        raise InvalidFields({f"rule.{name}": text for name, text in error.fields.items()}) from None


def _stored(store: Callable[[], StoredRule]) -> dict[str, Any]:
    try:
        return rule_json(store())
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"rule.name": str(error)}}) from None
