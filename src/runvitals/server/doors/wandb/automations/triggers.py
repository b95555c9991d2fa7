"""The automations of teams, and where they send messages: channels of Slack, and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from fastapi import HTTPException

from runvitals.model.account_names import ORGANISATION
from runvitals.model.registry_names import project_of_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.principals import User
from runvitals.server.alerts.automations import InvalidAutomation, automation_of
from runvitals.server.alerts.routes.automation_checks import checked_definition
from runvitals.server.alerts.storage.automations import AutomationRow
from runvitals.server.alerts.storage.destinations import StoredDestination
from runvitals.server.doors.wandb import registry_filters as conditions
from runvitals.server.doors.wandb.artifact_lists import compiled, sorted_by
from runvitals.server.doors.wandb.artifact_nodes import page_info, project_of
from runvitals.server.doors.wandb.artifact_requests import collection_number
from runvitals.server.doors.wandb.automations.events import USE_OURS, EventParts, our_event, their_event
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import FailedRequest, InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, iso_time
from runvitals.server.doors.wandb.viewer import UserNode
from runvitals.server.http.errors import InvalidFields
from runvitals.store.errors import LimitReached, NameTaken, NotFound

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

AUTOMATIONS: Final = Resolvers("automations")
_WEBHOOK, _SLACK = "GenericWebhookIntegration", "SlackIntegration"
_NOTIFIED: Final = ("slack", "webhook")
_SCOPES: Final = "PROJECT, ARTIFACT_COLLECTION, ENTITY"


@AUTOMATIONS.field("Entity", "integrations")
def integrations(node: EntityNode, info: Info, after: str | None = None, first: int | None = None) -> Any:
    """Return the channels of Slack and the webhooks of a team, all on one page: there are at most 70.

    Administrators of registries of the organisation get those of the organisation by name.
    """
    context = info.context
    principal, names_only = context.requester.principal, False
    if isinstance(principal, User) and node.number is not None and _is_organisation(context, node):
        names_only = not principal.org_admin and any(
            _administers(context, number) for number in context.access.directory.projects_of(node.number)
        )
    team = (node.number or 0) if names_only else _team(context, node, Action.WEBHOOK_MANAGE)
    destinations = context.metadata_store.alerts.destinations
    nodes = [_integration(row, node) for row in destinations.of_team("slack", team)]
    webhooks = [_integration(row, node) for row in destinations.of_team("webhook", team)]
    nodes += [{**row, "urlEndpoint": ""} for row in webhooks] if names_only else webhooks
    return _all_of(nodes)


@AUTOMATIONS.field("Entity", "triggers")
def triggers(
    node: EntityNode,
    info: Info,
    after: str | None = None,
    first: int | None = None,
    order: str | None = None,
    filters: str | None = None,
) -> dict[str, Any]:
    """Return the automations of a team that wandb can express, all on one page: there are at most 200."""
    holds = compiled(filters, {"name": conditions.text})
    matches = [trigger for trigger in _triggers(info.context, node) if holds({"name": trigger["name"]})]
    return _all_of(sorted_by(matches, order, {"name": itemgetter("name")}))


@AUTOMATIONS.field("User", "projects")
def projects(user: UserNode, info: Info, after: str | None = None, first: int | None = None) -> Any:
    """Return the automations of each of the viewer's teams, as those of a project."""
    context: GraphQLContext = info.context
    organisation = context.access.directory.entity_named(ORGANISATION)
    owners = [team for team in user.teams if team.number is not None and _may_read(context, team)]
    owners += [] if organisation is None else [EntityNode(organisation.id, ORGANISATION)]
    return _all_of([{"triggers": _triggers(context, owner)} for owner in owners])


@AUTOMATIONS.field("Project", "triggers")
def project_triggers(node: ProjectNode | Mapping[str, Any], info: Info) -> list[dict[str, Any]]:
    """Return the automations of a project alone, or those of a node of `User.projects`."""
    if isinstance(node, Mapping):
        triggers: list[dict[str, Any]] = node["triggers"]
        return triggers
    if not _is_organisation(info.context, node.entity) and not _may_read(info.context, node.entity):
        return []
    return [trigger for trigger in _triggers(info.context, node.entity) if trigger["scope"]["id"] == node.id]


@AUTOMATIONS.field("Mutation", "createFilterTrigger")
def create_trigger(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Create an automation."""
    context = info.context
    scope = _scope(context, input["scope_type"], input["scope_id"])
    team = _managed_owner(context, scope.team, scope.registry_id)
    parts = our_event(input["triggering_event_type"], input["event_filter"], scope.collection)
    action = _action(input["triggered_action_type"], input["triggered_action_config"])
    description = input.get("description") or ""
    definition = _checked(context, team, scope, parts, action, {"description": description})
    table, by = context.metadata_store.alerts.automations, context.requester.actor
    name, enabled = input["name"], input["enabled"]
    row = _stored(
        lambda: table.create(team, name, enabled, definition, by, context.now_ms(), scope.registry_id)
    )
    return {"trigger": _trigger(context, scope.team, row)}


@AUTOMATIONS.field("Mutation", "updateFilterTrigger")
def update_trigger(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Change an automation. What is null stays as it is."""
    context = info.context
    node, row = _of_id(context, input["id"])
    team = _managed_owner(context, node, row.registry_id)
    changes: dict[str, Any] = {
        name: input[name] for name in ("name", "enabled") if input.get(name) is not None
    }
    definition = {
        "cooldown_h": row.definition["cooldown_h"],
        "description": row.definition.get("description", ""),
    }
    if input.get("description") is not None:
        definition["description"] = input["description"]
    if input.get("scope_id") and input.get("event_filter") and input.get("triggered_action_config"):
        scope = _scope(context, input.get("scope_type") or "", input["scope_id"])
        if (scope.team.number, scope.registry_id) != (team, row.registry_id):
            raise InvalidArgument(
                "an automation stays in its team or registry: delete it, and create another one"
            )
        parts = our_event(input.get("triggering_event_type") or "", input["event_filter"], scope.collection)
        action = _action(input.get("triggered_action_type") or "", input["triggered_action_config"])
        changes["definition"] = _checked(context, team, scope, parts, action, definition)
    elif definition["description"] != row.definition.get("description", ""):
        changes["definition"] = {**row.definition, **definition}
    table, by = context.metadata_store.alerts.automations, context.requester.actor
    changed = _stored(lambda: table.update(team, row.id, changes, by, context.now_ms()))
    return {"trigger": _trigger(context, node, changed)}


@AUTOMATIONS.field("Mutation", "deleteTrigger")
def delete_trigger(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Delete an automation."""
    context = info.context
    node, row = _of_id(context, input["trigger_id"])
    team = _managed_owner(context, node, row.registry_id)
    by, now_ms = context.requester.actor, context.now_ms()
    context.metadata_store.alerts.automations.delete(team, row.id, by, now_ms)
    return {"success": True}


@AUTOMATIONS.field("Mutation", "createGenericWebhookIntegration")
def create_webhook(_: None, info: Info, input: dict[str, Any]) -> NoReturn:
    """Refuse to create a webhook."""
    raise InvalidArgument(
        "webhooks are added on the page of the team (Notifications), or by POST /api/v1/teams/TEAM/webhooks"
    )


class _Scope(NamedTuple):
    """What an automation is about: everything of a team, a project, or a collection.

    `projects`: names. `registry_id`: of the project, if it is a registry of the organisation.
    """

    team: EntityNode
    projects: tuple[str, ...] = ()
    collection: str = ""
    registry_id: int | None = None


def _scope(context: GraphQLContext, kind: str, id: str) -> _Scope:
    """Return what an automation is to be about, which the requester may read.

    Raises:
        InvalidArgument: an unknown kind.
        HTTPException: 404 if there is none that the requester may know of.
    """
    if kind == "PROJECT":
        return _in_project(context, _project(context, number_of("Project", id)))
    if kind == "ARTIFACT_COLLECTION":
        row = context.metadata_store.artifacts.collections.get(collection_number(id))
        project = project_of(context, row)
        _require_readable(context, project)
        return _in_project(context, project, row.name)
    if kind == "ENTITY":
        return _Scope(_entity(context, number_of("Entity", id)))
    raise InvalidArgument(f"invalid scopeType {kind[:60]!r}; expected one of {_SCOPES}")


def _in_project(context: GraphQLContext, project: ProjectNode, collection: str = "") -> _Scope:
    if _is_organisation(context, project.entity):
        return _Scope(project.entity, (), collection, project.number)
    return _Scope(project.entity, (project.name,), collection)


def _is_organisation(context: GraphQLContext, node: EntityNode) -> bool:
    return node.number is not None and context.access.directory.entity(node.number).organisation


def _project(context: GraphQLContext, number: int) -> ProjectNode:
    resource = context.access.directory.project(number)
    name = context.metadata_store.projects.name_of(number)
    node = ProjectNode(number, name, _entity(context, resource.entity.id), resource)
    _require_readable(context, node)
    return node


def _require_readable(context: GraphQLContext, node: ProjectNode) -> None:
    if node.resource is not None:
        context.access.require(context.requester, Action.PROJECT_READ, node.resource, "project")


def _entity(context: GraphQLContext, number: int) -> EntityNode:
    names = context.access.accounts.entity_names([number])
    if number not in names:
        raise HTTPException(404, "there is no such team")
    return context.entity_named(names[number])


def _team(context: GraphQLContext, node: EntityNode, action: Action) -> int:
    """Return the number of a team in which the requester may do this."""
    if node.number is None or not node.is_team:
        raise InvalidArgument(
            f"{node.name} is no team: automations belong to teams, on servers with accounts"
        )
    resource = context.access.directory.entity(node.number)
    context.access.require(context.requester, action, resource, f"team {node.name!r}")
    return node.number


def _managed_owner(context: GraphQLContext, node: EntityNode, registry_id: int | None) -> int:
    """Return the number of a team, or of the organisation, whose automations the requester may change.

    Args:
        registry_id: the automation is about this registry, whose administrators change it.
    """
    if registry_id is None or node.number is None:
        return _team(context, node, Action.AUTOMATION_MANAGE)
    registry = registry_of(context.access.directory.project(registry_id))
    context.access.require(context.requester, Action.REGISTRY_MANAGE_ADMINS, registry, "registry")
    return node.number


def _administers(context: GraphQLContext, registry_id: int | None) -> bool:
    if registry_id is None:
        return False
    registry = registry_of(context.access.directory.project(registry_id))
    return context.access.may(context.requester, Action.REGISTRY_MANAGE_ADMINS, registry)


def _may_read(context: GraphQLContext, node: EntityNode, registry_id: int | None = None) -> bool:
    """Return whether the requester may read the automations of a team, or that about a registry."""
    if node.number is None or not node.is_team:
        return False
    may, directory = context.access.may, context.access.directory
    if registry_id is not None:
        registry = registry_of(directory.project(registry_id))
        if may(context.requester, Action.REGISTRY_LINK, registry):
            return True
    return may(context.requester, Action.AUTOMATION_READ, directory.entity(node.number))


def _of_id(context: GraphQLContext, id: str) -> tuple[EntityNode, AutomationRow]:
    """Return an automation and its team.

    Raises:
        FailedRequest: 404 if there is none that the requester may know of.
    """
    row = context.metadata_store.alerts.automations.find(number_of("Trigger", id))
    if row is None:
        raise FailedRequest(404, "there is no such automation")
    node = _entity(context, row.team_id)
    if not _may_read(context, node, row.registry_id):
        raise FailedRequest(404, "there is no such automation")
    return node, row


def _action(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return our action for one of theirs.

    Raises:
        InvalidArgument: there is no such action here.
    """
    webhook, message = config.get("generic_webhook_action_input"), config.get("notification_action_input")
    if kind == "GENERIC_WEBHOOK" and webhook:
        number = number_of(_WEBHOOK, webhook["integration_id"])
        return {"kind": "webhook", "webhook": number, "payload": webhook.get("request_payload")}
    if kind == "NOTIFICATION" and message:
        if message.get("title") or message.get("message"):
            raise InvalidArgument(
                "messages to Slack say what happened, in words of this server: leave out title and message"
            )
        return {"kind": "slack", "destination": number_of(_SLACK, message["integration_id"])}
    raise InvalidArgument(
        f"the action {kind[:60]} is not supported; expected GENERIC_WEBHOOK or NOTIFICATION. "
        f"For others, {USE_OURS}"
    )


def _checked(
    context: GraphQLContext,
    team: int,
    scope: _Scope,
    parts: EventParts,
    action: Mapping[str, Any],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    where = {"projects": list(scope.projects), **parts.where}
    definition = {"cooldown_h": 0, "event": parts.event, "filter": where, "actions": [dict(action)], **more}
    try:
        return checked_definition(definition, context.access, team, scope.registry_id)
    except InvalidFields as error:
        raise InvalidArgument(str(error.detail)) from None


def _stored(store: Callable[[], AutomationRow]) -> AutomationRow:
    try:
        return store()
    except NameTaken as error:
        raise FailedRequest(409, str(error)) from None
    except (LimitReached, ValueError) as error:
        raise InvalidArgument(str(error)) from None


def _triggers(context: GraphQLContext, node: EntityNode) -> list[dict[str, Any]]:
    """Return the automations of a team, or those of the organisation that the requester may read."""
    is_organisation = _is_organisation(context, node) and node.number is not None
    team = node.number if is_organisation else _team(context, node, Action.AUTOMATION_READ)
    rows = context.metadata_store.alerts.automations.of_team(team or 0)
    triggers = (_trigger(context, node, row) for row in rows if _may_read(context, node, row.registry_id))
    return [trigger for trigger in triggers if trigger is not None]


def _trigger(context: GraphQLContext, node: EntityNode, row: AutomationRow) -> dict[str, Any] | None:
    """Return an automation as clients see it; None if wandb has no such event or action."""
    try:
        automation_of(row.definition)
    except InvalidAutomation:
        return None
    event = their_event(row.definition)
    action = _their_action(context, node, row)
    if event is None or action is None:
        return None
    return {
        "id": node_id("Trigger", row.id),
        "createdAt": iso_time(row.created_ms),
        "updatedAt": iso_time(row.changed_ms),
        "name": row.name,
        "description": row.definition.get("description") or None,
        "enabled": row.enabled,
        "scope": _their_scope(context, node, row),
        "triggeringCondition": {
            "__typename": "FilterEventTriggeringCondition",
            "eventType": event[0],
            "filter": event[1],
        },
        "triggeredAction": action,
    }


def _their_scope(context: GraphQLContext, node: EntityNode, row: AutomationRow) -> dict[str, Any]:
    names = row.definition["filter"]["projects"]
    project = None
    if row.registry is not None:
        project = context.access.directory.project(row.registry_id or 0)
        names = [project_of_registry(row.registry)]
    elif len(names) == 1 and node.number is not None:
        project = context.access.directory.project_named(node.number, names[0])
    if project is None:
        return {"__typename": "Entity", "id": node.id, "name": node.name, "entityType": node.entity_type}
    return {"__typename": "Project", "id": node_id("Project", project.id), "name": names[0]}


def _their_action(context: GraphQLContext, node: EntityNode, row: AutomationRow) -> dict[str, Any] | None:
    """Return the only action of an automation; None if there are others, or what it uses was deleted."""
    actions = row.definition["actions"]
    if len(actions) != 1 or actions[0]["kind"] not in _NOTIFIED or node.number is None:
        return None
    action = actions[0]
    destinations = context.metadata_store.alerts.destinations
    try:
        if action["kind"] == "slack":
            channel = destinations.get("slack", node.number, action["destination"])
            message = {"title": "", "message": "", "severity": "INFO"}
            return {
                "__typename": "NotificationTriggeredAction",
                "integration": _integration(channel, node),
                **message,
            }
        webhook = destinations.get("webhook", node.number, action["webhook"])
    except NotFound:
        return None
    integration, payload = _integration(webhook, node), action.get("payload")
    may, directory = context.access.may, context.access.directory
    if not may(context.requester, Action.AUTOMATION_MANAGE, directory.entity(node.number)):
        integration = {**integration, "urlEndpoint": ""}  # users write tokens into both
        if not _administers(context, row.registry_id):
            payload = None
    return {
        "__typename": "GenericWebhookTriggeredAction",
        "integration": integration,
        "requestPayload": payload,
    }


def _integration(row: StoredDestination, node: EntityNode) -> dict[str, Any]:
    if row.kind == "slack":
        channel = {"teamName": node.name, "channelName": row.name}
        return {"__typename": _SLACK, "id": node_id(_SLACK, row.id), **channel}
    url = row.settings.get("url", "")
    return {"__typename": _WEBHOOK, "id": node_id(_WEBHOOK, row.id), "name": row.name, "urlEndpoint": url}


def _all_of(nodes: list[Any]) -> dict[str, Any]:
    edges = [{"node": node, "cursor": str(number)} for number, node in enumerate(nodes, 1)]
    return {"edges": edges, "pageInfo": page_info(str(len(nodes)), False)}
