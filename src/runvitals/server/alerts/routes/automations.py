"""`/teams/{team}/automations`: what happens by itself when something happens to the team's runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.alerts.automations import (
    Automation,
    CallWebhook,
    InvalidAutomation,
    MailMembers,
    StopRun,
    TagRun,
    TellApprise,
    TellSlack,
    as_json,
    automation_of,
)
from runvitals.server.alerts.payload_template import check_payload
from runvitals.server.alerts.reactions import facts_of, notifications_of, times_of
from runvitals.server.alerts.routes.notifications import NotificationsPage, history_of
from runvitals.server.alerts.storage.automations import MAX_NAME, AutomationRow, RaisedEvent
from runvitals.server.events.outbox import add
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import DetailedError, InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess
from runvitals.server.teams.routes.parameters import TheTeam, entity_of
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NameTaken, NotFound

AutomationId = Annotated[int, Path(ge=1, le=2**31 - 1)]
_EXAMPLE: Final = {
    "state": "finished",
    "tag": "example",
    "alias": "example",
    "metric_name": "loss",
    "metric_value": 0.5,
    "finding": "an example",
    "found": {
        "id": "idle",
        "severity": "warning",
        "text": "The devices of an example are idle.",
        "advice": "Nothing: this is an example.",
    },
    "percent": 85,
    "category": "storage",
}

_PARTS: Final = ("event", "filter", "actions", "cooldown_h", "description")


router = Router()


class AutomationFilterSchema(ResponseBody):
    """Which runs and artifacts an automation is about; what is empty excludes none."""

    projects: list[str]
    run_name: str
    author: str
    tag: str


class AutomationSchema(ResponseBody):
    """An automation. Of a definition that is damaged in the database there is only `damaged`."""

    id: int
    name: str
    enabled: bool
    event: dict[str, Any] = {}
    actions: list[dict[str, Any]] = []
    filter: AutomationFilterSchema = AutomationFilterSchema(projects=[], run_name="", author="", tag="")
    cooldown_h: int = 24
    description: str = ""
    damaged: str | None = None
    created_by: str | None = Field(description="None: the user was deleted.")
    created_ms: int
    changed_ms: int
    problem: str | None = Field(description="Why the server switched it off.")


AutomationsPage = page_body(
    "AutomationsPage", "The automations of a team.", automations=list[AutomationSchema]
)


class AutomationTest(ResponseBody):
    """The result of a test of an automation."""

    sent: int = Field(description="How many receivers get a message.")


class AutomationPreview(ResponseBody):
    """How often an automation would have acted."""

    days: int
    times: int | None = Field(description="None: it is not known.")
    times_ms: list[int] = Field(description="The newest 100 times.")


class NewAutomation(RequestBody):
    """An automation to create."""

    name: str = Field(min_length=1, max_length=MAX_NAME)
    enabled: bool = True
    event: dict[str, Any] = Field(description="`kind` and what belongs to it, such as `states`.")
    filter: dict[str, Any] = Field({}, description="`projects`, `run_name`, `author`, `tag`.")
    actions: list[dict[str, Any]] = Field(description="Each with `kind`: slack, webhook, mail, stop, tag.")
    cooldown_h: int = Field(24, description="For how many hours it does not act on the same run again.")
    description: str = ""


class AutomationChanges(RequestBody):
    """Changes; a field that is left out stays as it is."""

    name: str = Field("", min_length=1, max_length=MAX_NAME)
    enabled: bool = True
    event: dict[str, Any] = {}
    filter: dict[str, Any] = {}
    actions: list[dict[str, Any]] = []
    cooldown_h: int = 24
    description: str = ""


class Preview(RequestBody):
    """Over how many past days an automation is tried."""

    days: int = Field(30, ge=1, le=90)


@router.get(
    "/teams/{team}/automations",
    response_model=AutomationsPage,
    response_model_exclude_unset=True,
    dependencies=[needs("automation:read")],
)
def automations(team: TheTeam, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The team's automations, in the order in which they were created."""
    rows = access.metadata_store.alerts.automations.of_team(team.id)
    manages = access.may(requester, Action.AUTOMATION_MANAGE, entity_of(access, team))
    return page_of("automations", rows, lambda row: row.id, page, partial(_show, with_payloads=manages))


@router.post(
    "/teams/{team}/automations",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
    status_code=201,
    dependencies=[needs("automation:manage")],
)
def create_automation(
    body: NewAutomation, team: TheTeam, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Create an automation. It acts with the rights that its creator has when something happens."""
    definition = checked_definition(body.model_dump(exclude={"name", "enabled"}), access, team.id)
    table, by, now_ms = access.metadata_store.alerts.automations, requester.actor, access.clock()
    return _store(lambda: table.create(team.id, body.name, body.enabled, definition, by, now_ms))


@router.get(
    "/teams/{team}/automations/{automation}",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
    dependencies=[needs("automation:read")],
)
def one_automation(
    automation: AutomationId, team: TheTeam, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """An automation."""
    row = access.metadata_store.alerts.automations.get(team.id, automation)
    return _show(row, access.may(requester, Action.AUTOMATION_MANAGE, entity_of(access, team)))


@router.patch(
    "/teams/{team}/automations/{automation}",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
    dependencies=[needs("automation:manage")],
)
def change_automation(
    automation: AutomationId,
    body: AutomationChanges,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
) -> dict[str, Any]:
    """Change an automation. Whoever changes what it does becomes its creator."""
    table = access.metadata_store.alerts.automations
    changes = body.model_dump(exclude_unset=True)
    parts: dict[str, Any] = {name: changes.pop(name) for name in _PARTS if name in changes}
    if parts:
        present = table.get(team.id, automation).definition
        changes["definition"] = checked_definition({**present, **parts}, access, team.id)
    by, now_ms = requester.actor, access.clock()
    return _store(lambda: table.update(team.id, automation, changes, by, now_ms))


@router.delete(
    "/teams/{team}/automations/{automation}", status_code=204, dependencies=[needs("automation:manage")]
)
def delete_automation(
    automation: AutomationId, team: TheTeam, access: TheAccess, requester: TheRequester
) -> None:
    """Delete an automation. What it has sent stays in the history."""
    table = access.metadata_store.alerts.automations
    table.delete(team.id, automation, requester.actor, access.clock())


@router.get(
    "/teams/{team}/automations/{automation}/history",
    response_model=NotificationsPage,
    dependencies=[needs("automation:manage")],
)
def history(automation: AutomationId, team: TheTeam, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """List the notifications of an automation in the last month, the newest first, with their states."""
    store = access.metadata_store.alerts
    store.automations.get(team.id, automation)
    return history_of(store.outbox, team.id, page, automation)


@router.post(
    "/teams/{team}/automations/{automation}/test",
    response_model=AutomationTest,
    status_code=202,
    dependencies=[needs("automation:manage")],
)
def test_automation(automation: AutomationId, team: TheTeam, access: TheAccess) -> AutomationTest:
    """Tell the receivers of an automation about an invented run. No run is stopped or tagged."""
    row = access.metadata_store.alerts.automations.get(team.id, automation)
    parsed = automation_of(row.definition)
    actions = tuple(action for action in parsed.actions if not isinstance(action, (StopRun, TagRun)))
    event = _example_event(parsed, team, access.clock())
    automation_to_test = Automation(parsed.event, actions, parsed.filter) if actions else None
    sent = (
        []
        if automation_to_test is None
        else list(notifications_of(row, automation_to_test, event, facts_of(event)))
    )
    for notification in sent:
        new = replace(notification, kind="test", text=f"Test: {notification.text}", subject=event.key)
        access.metadata_store.write(lambda connection, new=new: add(connection, new))  # type: ignore[misc]
    return AutomationTest(sent=len(sent))


@router.post(
    "/teams/{team}/automations/{automation}/preview",
    response_model=AutomationPreview,
    dependencies=[needs("automation:manage")],
)
def preview(
    automation: AutomationId,
    body: Preview,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
) -> AutomationPreview:
    """How often an automation would have acted in the last days."""
    store, now_ms = access.metadata_store.alerts, access.clock()
    row = store.automations.get(team.id, automation)
    kind = automation_of(row.definition).kind
    past = store.past_events.of_team(team.id, kind, now_ms - body.days * DAY_MS, now_ms)
    if past is None:
        return AutomationPreview(days=body.days, times=None, times_ms=[])
    readable = {
        number
        for number, project in access.directory.projects_of(team.id).items()
        if access.may(requester, Action.PROJECT_READ, project)
    }
    times = times_of(row, [event for event in past if event.project_id in readable])
    return AutomationPreview(days=body.days, times=len(times), times_ms=times[-100:])


def _show(row: AutomationRow, with_payloads: bool) -> dict[str, Any]:
    """Return an automation. Users write tokens into payloads: only those who manage automations get them."""
    definition = dict(row.definition)
    if not with_payloads and "actions" in definition:
        actions = definition["actions"]
        definition["actions"] = [
            {**action, "payload": None} if "payload" in action else action for action in actions
        ]
    names = ("id", "name", "enabled", "created_by", "created_ms", "changed_ms", "problem")
    return {**definition, **{name: getattr(row, name) for name in names}}


def checked_definition(definition: dict[str, Any], access: AccessControl, team_id: int) -> dict[str, Any]:
    """Check a definition, and return it with everything that was left out.

    Raises:
        InvalidFields: it is invalid, or names what the team does not have.
    """
    try:
        automation = automation_of(definition)
    except InvalidAutomation as error:
        raise InvalidFields({error.field: str(error)}) from None
    accounts, destinations = access.accounts, access.metadata_store.alerts.destinations
    for number, action in enumerate(automation.actions):
        field = f"actions[{number}]"
        try:
            if isinstance(action, TellSlack):
                destinations.get("slack", team_id, action.destination)
            elif isinstance(action, TellApprise):
                destinations.get("apprise", team_id, action.destination)
            elif isinstance(action, CallWebhook):
                webhook = destinations.get("webhook", team_id, action.webhook)
                if action.payload is not None:
                    with checking(f"{field}.payload"):
                        signing_secret = webhook.settings["signing_secret"]
                        check_payload(action.payload, list(filter(None, [signing_secret])))
            elif isinstance(action, MailMembers):
                members = {member.name for member in accounts.members.of_teams([team_id]).get(team_id, ())}
                if unknown := sorted(set(action.members) - members):
                    raise InvalidFields({f"{field}.members": f"{', '.join(unknown)}: no member of the team"})
        except NotFound as error:
            raise InvalidFields({field: str(error)}) from None
    return as_json(automation)


def _example_event(automation: Automation, team: TeamRow, now_ms: int) -> RaisedEvent:
    """Return an event for a test."""
    data = dict(_EXAMPLE)
    if automation.kind.startswith(("artifact.", "registry.")):
        data |= {"project": "example", "collection": "example", "type": "model", "version": 0}
    key = f"test:{secrets.token_hex(8)}"
    return RaisedEvent(
        0,
        key,
        automation.kind,
        team.id,
        team.name,
        now_ms,
        None,
        None,
        "",
        "an example",
        "example",
        None,
        "",
        (),
        data,
    )


def _store(store: Callable[[], AutomationRow]) -> dict[str, Any]:
    """Store an automation. An error names its field."""
    try:
        with checking("name"):
            return _show(store(), with_payloads=True)
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"name": str(error)}}) from None
