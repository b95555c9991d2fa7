"""Whose key it is, what the server can do, and entities by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.control import unauthenticated
from runvitals.server.access.principals import Operator, ServiceAccount, User
from runvitals.server.access.resources import Registry
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.resolvers import Resolvers

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

VIEWER: Final = Resolvers("viewer")
OLDEST_CLIENT: Final = "0.16.0"
NEWEST_CLIENT: Final = "99.0.0"
"""The newest client that may connect: none is refused because it is new."""
FEATURES: Final = (
    "ARTIFACT_COLLECTIONS_FILTERING_SORTING",
    "ARTIFACT_REGISTRY_SEARCH",
    "AUTOMATION_EVENT_RUN_METRIC",
    "AUTOMATION_EVENT_RUN_METRIC_CHANGE",
    "AUTOMATION_EVENT_RUN_METRIC_ZSCORE",
    "AUTOMATION_EVENT_RUN_STATE",
    "AUTOMATION_SCOPE_ENTITY",
    "FILESTREAM_GZIP",
    "INCLUDE_ARTIFACT_TYPES_IN_REGISTRY_CREATION",
    "QUERY_AUTOMATIONS_ON_ENTITY",
    "UPDATE_RUN_STATE",
)
"""The names of the optional abilities of wandb's servers that this one has."""


@dataclass(frozen=True, slots=True)
class UserNode:
    """The owner of a key, for the type `User`."""

    id: str
    username: str
    entity: str | None
    teams: list[EntityNode]
    name: str | None = None
    email: str | None = None
    admin: bool = False
    flags: str = "{}"


@VIEWER.field("Query", "viewer")
def viewer(_: None, info: Info) -> UserNode:
    """Return the owner of the key that the request came with."""
    context = info.context
    context.services.resuming_clients.note_viewer(context.requester)
    principal, accounts = context.requester.principal, context.access.accounts
    if isinstance(principal, Operator) or not context.has_accounts:
        entity = context.default_entity()
        return UserNode(node_id("User", 0), entity.name, entity.name, [entity], entity.name)
    if isinstance(principal, User):
        row, address = accounts.users.get(principal.id), accounts.emails.primary(principal.id)
        names = accounts.entity_names([*principal.teams, *filter(None, [principal.home])])
        teams = [EntityNode(number, name) for number, name in names.items()]  # and the own entity
        return UserNode(
            node_id("User", principal.id),
            row.name,
            None if principal.home is None else names.get(principal.home),
            teams,
            row.display_name or row.name,
            None if address is None else address.address,
            principal.org_admin,
        )
    if isinstance(principal, ServiceAccount):
        home = accounts.entity_names([] if principal.home is None else [principal.home])
        teams = [EntityNode(number, name) for number, name in home.items()]
        entity_name = next(iter(home.values()), None)
        name = context.requester.name
        return UserNode(node_id("User", 0), name, entity_name, teams, name)
    raise unauthenticated()


@VIEWER.field("User", "teams")
async def teams_of(user: UserNode, info: Info) -> dict[str, Any]:
    """Return the teams of a user, as a connection."""
    return {"edges": [{"node": team} for team in user.teams]}


@VIEWER.field("Query", "serverInfo")
async def server_info(_: None, info: Info) -> dict[str, Any]:
    """Return which clients may connect, and what the server can do."""
    return {
        "cliVersionInfo": {"min_cli_version": OLDEST_CLIENT, "max_cli_version": NEWEST_CLIENT},
        "latestLocalVersionInfo": None,
        "features": [{"name": name, "isEnabled": True} for name in FEATURES],
    }


@VIEWER.field("Query", "entity")
def entity(_: None, info: Info, name: str | None = None) -> EntityNode | None:
    """Return a team or user's own space; null if the requester may not know of it."""
    return readable_entity(info.context, name)


def readable_entity(context: GraphQLContext, name: str | None) -> EntityNode | None:
    """Return a team, a user's own space or the organisation; None if the requester may not know of it.

    Without a name: the default.
    """
    try:
        entity = context.entity_named(name)
    except HTTPException:
        return None
    if entity.number is None:
        return entity
    resource = context.access.directory.entity(entity.number)
    may = partial(context.access.may, context.requester)
    if resource.organisation:
        return entity if may(Action.REGISTRY_READ, Registry(0, resource, shared=True)) else None
    return entity if may(Action.TEAM_READ, resource) else None
