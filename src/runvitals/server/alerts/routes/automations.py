"""`/teams/{team}/automations`: what happens by itself when something happens to the team's runs.

`/teams/organisation/automations` are those about all registries of the organisation, and
`/teams/organisation/registries/{registry}/automations` those about one, which its administrators manage.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from fastapi import Depends, HTTPException, Path, Request
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Registry
from runvitals.server.alerts.automations import (
    Automation,
    StopRun,
    TagRun,
    automation_of,
)
from runvitals.server.alerts.reactions import facts_of, notifications_of, times_of
from runvitals.server.alerts.routes.automation_checks import checked_definition
from runvitals.server.alerts.routes.notifications import NotificationsPage, history_of
from runvitals.server.alerts.storage.automations import MAX_NAME, AutomationRow, RaisedEvent
from runvitals.server.events.outbox import add
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import DetailedError, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.registry.routes.parameters import REGISTRY, requires
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.teams.routes.parameters import AutomationOwner, TheAutomationOwner
from runvitals.store.errors import NameTaken

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

_OF_REGISTRY: Final = {
    "automation:read": Action.REGISTRY_LINK,
    "automation:manage": Action.REGISTRY_MANAGE_ADMINS,
}
"""What is needed for those about a registry."""
_REGISTRY_PARAMETER: Final = {
    "parameters": [
        {"name": "registry", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 128}}
    ]
}
_PARTS: Final = ("event", "filter", "actions", "cooldown_h", "description")


router = Router()
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def _route(method: str, path: str, permission: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Decorates the function of a route about automations of a team, and about those of a registry."""

    def add(endpoint: Endpoint) -> Endpoint:
        for beginning, needed in (
            ("/teams/{team}", [needs(permission)]),
            (REGISTRY, requires(_OF_REGISTRY[permission].value)),
        ):
            router.add_api_route(
                f"{beginning}/automations{path}",
                endpoint,
                methods=(method,),
                dependencies=needed,
                openapi_extra=_REGISTRY_PARAMETER if beginning == REGISTRY else None,
                **options,
            )
        return endpoint

    return add


class AutomationScope(NamedTuple):
    """Whose automations a request is about: all of an owner, or those about one registry.

    Attributes:
        manages: the requester may change them.
    """

    owner: AutomationOwner
    registry_id: int | None
    manages: bool

    def find(self, access: AccessControl, automation: int) -> AutomationRow:
        """Return one of these automations, or raise NotFound."""
        return access.metadata_store.alerts.automations.get(self.owner.id, automation, self.registry_id)


def the_scope(
    request: Request, owner: TheAutomationOwner, access: TheAccess, requester: TheRequester
) -> AutomationScope:
    """Return whose automations the path is about.

    Raises:
        HTTPException: 422: those about a registry of a team are the team's.
    """
    registry: Registry | None = getattr(request.state, "registry", None)
    if registry is None:
        entity = access.directory.entity(owner.id)
        return AutomationScope(owner, None, access.may(requester, Action.AUTOMATION_MANAGE, entity))
    if not registry.team.organisation:
        raise HTTPException(
            422, f"automations about a registry of a team are the team's: /teams/{owner.name}/automations"
        )
    manages = access.may(requester, Action.REGISTRY_MANAGE_ADMINS, registry)
    return AutomationScope(owner, registry.id, manages)


TheScope = Annotated[AutomationScope, Depends(the_scope)]


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
    registry: str | None = Field(description="The only registry of the organisation that it is about.")
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


class NamedReceiver(ResponseBody):
    """A channel or webhook."""

    id: int
    name: str


class Receivers(ResponseBody):
    """The channels and webhooks of the organisation."""

    slack: list[NamedReceiver]
    webhook: list[NamedReceiver]
    apprise: list[NamedReceiver]


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


@_route(
    "GET",
    "",
    "automation:read",
    response_model=AutomationsPage,
    response_model_exclude_unset=True,
)
def automations(scope: TheScope, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's automations, in the order in which they were created."""
    rows = access.metadata_store.alerts.automations.of_team(scope.owner.id, scope.registry_id)
    show = partial(_show, with_payloads=scope.manages)
    return page_of("automations", rows, lambda row: row.id, page, show)


@_route(
    "POST",
    "",
    "automation:manage",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
    status_code=201,
)
def create_automation(
    body: NewAutomation, scope: TheScope, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Create an automation. It acts with the rights that its creator has when something happens."""
    parts = body.model_dump(exclude={"name", "enabled"})
    definition = checked_definition(parts, access, scope.owner.id, scope.registry_id)
    table, by, now_ms = access.metadata_store.alerts.automations, requester.actor, access.clock()
    return _store(
        lambda: table.create(
            scope.owner.id, body.name, body.enabled, definition, by, now_ms, scope.registry_id
        )
    )


@_route(
    "GET",
    "/{automation}",
    "automation:read",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
)
def one_automation(automation: AutomationId, scope: TheScope, access: TheAccess) -> dict[str, Any]:
    """An automation."""
    return _show(scope.find(access, automation), scope.manages)


@_route(
    "PATCH",
    "/{automation}",
    "automation:manage",
    response_model=AutomationSchema,
    response_model_exclude_unset=True,
)
def change_automation(
    automation: AutomationId,
    body: AutomationChanges,
    scope: TheScope,
    access: TheAccess,
    requester: TheRequester,
) -> dict[str, Any]:
    """Change an automation. Whoever changes what it does becomes its creator."""
    table = access.metadata_store.alerts.automations
    changes = body.model_dump(exclude_unset=True)
    parts: dict[str, Any] = {name: changes.pop(name) for name in _PARTS if name in changes}
    present = scope.find(access, automation)
    if parts:
        new = {**present.definition, **parts}
        changes["definition"] = checked_definition(new, access, scope.owner.id, present.registry_id)
    by, now_ms = requester.actor, access.clock()
    return _store(lambda: table.update(scope.owner.id, automation, changes, by, now_ms))


@_route(
    "DELETE",
    "/{automation}",
    "automation:manage",
    status_code=204,
)
def delete_automation(
    automation: AutomationId, scope: TheScope, access: TheAccess, requester: TheRequester
) -> None:
    """Delete an automation. What it has sent stays in the history."""
    scope.find(access, automation)
    table = access.metadata_store.alerts.automations
    table.delete(scope.owner.id, automation, requester.actor, access.clock())


@_route(
    "GET",
    "/{automation}/history",
    "automation:manage",
    response_model=NotificationsPage,
)
def history(automation: AutomationId, scope: TheScope, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """List the notifications of an automation in the last month, the newest first, with their states."""
    scope.find(access, automation)
    return history_of(access.metadata_store.alerts.outbox, scope.owner.id, page, automation)


@_route(
    "POST",
    "/{automation}/test",
    "automation:manage",
    response_model=AutomationTest,
    status_code=202,
)
def test_automation(automation: AutomationId, scope: TheScope, access: TheAccess) -> AutomationTest:
    """Tell the receivers of an automation about an invented run. No run is stopped or tagged."""
    row = scope.find(access, automation)
    parsed = automation_of(row.definition)
    actions = tuple(action for action in parsed.actions if not isinstance(action, (StopRun, TagRun)))
    event = _example_event(parsed, scope.owner, access.clock())
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


@_route(
    "POST",
    "/{automation}/preview",
    "automation:manage",
    response_model=AutomationPreview,
)
def preview(
    automation: AutomationId,
    body: Preview,
    scope: TheScope,
    access: TheAccess,
    requester: TheRequester,
) -> AutomationPreview:
    """How often an automation would have acted in the last days."""
    store, now_ms = access.metadata_store.alerts, access.clock()
    row = scope.find(access, automation)
    kind = automation_of(row.definition).kind
    past = store.past_events.of_team(scope.owner.id, kind, now_ms - body.days * DAY_MS, now_ms)
    if past is None:
        return AutomationPreview(days=body.days, times=None, times_ms=[])
    readable = {
        number
        for number, project in access.directory.projects_of(scope.owner.id).items()
        if row.registry_id in (None, number) and access.may(requester, Action.PROJECT_READ, project)
    }
    times = times_of(row, [event for event in past if event.project_id in readable])
    return AutomationPreview(days=body.days, times=len(times), times_ms=times[-100:])


@router.get(f"{REGISTRY}/receivers", *requires("registry:manage_admins"), response_model=Receivers)
def receivers(scope: TheScope, access: TheAccess) -> dict[str, Any]:
    """Where automations about a registry of the organisation can send to, as its administrators added it."""
    table = access.metadata_store.alerts.destinations
    kinds: tuple[Literal["slack", "webhook", "apprise"], ...] = ("slack", "webhook", "apprise")
    return {kind: table.of_team(kind, scope.owner.id) for kind in kinds}


def _show(row: AutomationRow, with_payloads: bool) -> dict[str, Any]:
    """Return an automation. Users write tokens into payloads: only those who manage automations get them."""
    definition = dict(row.definition)
    if not with_payloads and "actions" in definition:
        actions = definition["actions"]
        definition["actions"] = [
            {**action, "payload": None} if "payload" in action else action for action in actions
        ]
    names = ("id", "name", "registry", "enabled", "created_by", "created_ms", "changed_ms", "problem")
    return {**definition, **{name: getattr(row, name) for name in names}}


def _example_event(automation: Automation, owner: AutomationOwner, now_ms: int) -> RaisedEvent:
    """Return an event for a test."""
    data = dict(_EXAMPLE)
    if automation.kind.startswith(("artifact.", "registry.")):
        data |= {"project": "example", "collection": "example", "type": "model", "version": 0}
    key = f"test:{secrets.token_hex(8)}"
    return RaisedEvent(
        0,
        key,
        automation.kind,
        owner.id,
        owner.name,
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
