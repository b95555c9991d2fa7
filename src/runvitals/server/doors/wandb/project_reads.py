"""Projects, users and the members of teams, as `wandb.Api()` reads them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from runvitals.base.numbers import parse_integer
from runvitals.model.errors import UnknownProject
from runvitals.model.names import PROJECT_NAME_ALLOWED, can_be_addressed
from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Operator, User
from runvitals.server.access.resources import Account
from runvitals.server.doors.wandb.artifact_requests import valid
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.registry_changes import upsert_registry
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, iso_time
from runvitals.server.doors.wandb.viewer import UserNode
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.projects.routes.readable import readable_projects

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

PROJECT_READS: Final = Resolvers("project_reads")
_MAX_PAGE: Final = 1000
_MAX_USERS: Final = 50
_MAX_NUMBER: Final = 2**53


@PROJECT_READS.field("Query", "models")
def models(
    _: None,
    info: Info,
    entity_name: str | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Return a page of the projects of a team or user, the one with the newest run first."""
    context = info.context
    begin = parse_integer(after, _MAX_NUMBER) if after else 0
    if begin is None:
        raise InvalidArgument("invalid after: expected the `endCursor` of a previous page")
    limit = max(1, min(_MAX_PAGE, 50 if first is None else first))
    nodes = _projects(context, entity_name)
    page = nodes[begin : begin + limit]
    end = begin + len(page)
    return {
        "edges": [{"node": node, "cursor": str(begin + index)} for index, node in enumerate(page, 1)],
        "pageInfo": {
            "endCursor": str(end),
            "hasNextPage": end < len(nodes),
            "hasPreviousPage": begin > 0,
            "startCursor": None,
        },
    }


def _projects(context: GraphQLContext, entity_name: str | None) -> list[ProjectNode]:
    if isinstance(context.requester.principal, Operator):
        entity = EntityNode(None, entity_name or context.default_entity().name)
        stored = context.metadata_store.projects.all(context.now_ms())
        return [ProjectNode(project.id, project.name, entity, None) for project in stored]
    try:
        owner = context.entity_named(entity_name)
    except HTTPException:  # the requester may not know of the entity: it seems to have no projects
        return []
    if owner.number is None:
        return []
    projects = context.access.directory.projects_of(owner.number)
    return [
        ProjectNode(project.id, project.name, owner, projects[project.id])
        for project in readable_projects(context.access, context.requester, owner.number)
        if project.id in projects
    ]


@PROJECT_READS.field("Project", "createdAt")
def project_created_at(node: ProjectNode, info: Info) -> str:
    """Return when the project was created."""
    context = info.context
    return iso_time(context.metadata_store.projects.created_ms(node.number))


@PROJECT_READS.field("Project", "isBenchmark")
async def is_benchmark(node: ProjectNode, info: Info) -> bool:
    """Return false: there are no benchmarks."""
    return False


@PROJECT_READS.field("Project", "description")
def project_description(node: ProjectNode, info: Info) -> str:
    """Return the description of a project."""
    context = info.context
    if node.resource is None:
        return ""
    return context.access.accounts.owned_projects.get(node.number).description


@PROJECT_READS.field("Project", "user")
def project_owner(node: ProjectNode, info: Info) -> UserNode | None:
    """Return the user who owns the project."""
    context = info.context
    if node.resource is None or node.resource.owner_id is None:
        return None
    try:
        name = context.access.accounts.owned_projects.get(node.number).owner
    except UnknownProject:  # deleted a moment ago
        return None
    return None if name is None else UserNode(node_id("User", node.resource.owner_id), name, name, [], name)


@PROJECT_READS.field("Mutation", "upsertModel")
def upsert_model(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Create a project or registry, or describe one."""
    context = info.context
    name, accounts = input.get("name"), context.access.accounts
    if not name or not can_be_addressed(name):
        raise InvalidArgument(f"invalid project name; expected {PROJECT_NAME_ALLOWED}")
    if is_registry(name) and context.has_accounts:
        return upsert_registry(context, input)
    entity = context.entity_named(input.get("entity_name"))
    if entity.number is None:
        raise InvalidArgument("without accounts a project is created by its first run")
    owner = context.access.directory.entity(entity.number)
    present = context.access.directory.project_named(entity.number, name)
    hidden = f"entity {(input.get('entity_name') or '')[:100]!r}"
    description, by, now_ms = input.get("description"), context.requester.actor, context.now_ms()
    if present is None:
        context.access.require(context.requester, Action.PROJECT_CREATE, owner, hidden)
        principal = context.requester.principal
        owner_id = principal.id if isinstance(principal, User) else None
        create = partial(accounts.owned_projects.create, owner_id=owner_id, description=description or "")
        valid(create, entity.number, name, by, now_ms)
    else:
        may = partial(context.access.may, context.requester)
        may_know = may(Action.TEAM_READ, owner) or may(Action.PROJECT_READ, present)
        what = f"project {name!r}" if may_know else hidden
        context.access.require(context.requester, Action.PROJECT_UPDATE, present, what)
        if description is not None:
            valid(accounts.owned_projects.update, present.id, by, now_ms, description=description)
    context.access.rights_changed()
    present_project = context.access.directory.project_named(entity.number, name)
    node = None if present_project is None else ProjectNode(present_project.id, name, entity, present_project)
    return {"project": node, "model": node, "inserted": present is None}


@PROJECT_READS.field("Query", "users")
def users(
    _: None,
    info: Info,
    query: str | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Return users by the beginning of their name."""
    context = info.context
    principal = context.requester.principal
    if isinstance(principal, Operator) or not query or not isinstance(principal, User):
        return {"edges": []}
    context.access.require(context.requester, Action.USER_READ, Account(principal.id), "users", changes=False)
    matches = context.access.accounts.users.search(query[:64].strip(), principal.id, _MAX_USERS)
    nodes = [
        UserNode(node_id("User", user.id), user.name, user.name, [], user.display_name or user.name)
        for user in matches
    ]
    return {"edges": [{"node": node} for node in nodes]}


@PROJECT_READS.field("User", "apiKeys")
async def api_keys(user: UserNode, info: Info) -> dict[str, Any]:
    """Return none: secrets of keys cannot be read again."""
    return {"edges": []}


@PROJECT_READS.field("Entity", "members")
def members(node: EntityNode, info: Info) -> list[dict[str, Any]]:
    """Return the members of a team, as far as the requester may see them; of an own space, its user."""
    context = info.context
    if node.number is None:
        return []
    if not node.is_team:
        owner = {"id": node_id("User", 0), "username": node.name, "name": node.name, "accountType": "USER"}
        return [{**owner, "admin": True, "pending": False, "email": None}]
    team, access = context.access.directory.entity(node.number), context.access
    access.require(context.requester, Action.TEAM_READ, team, f"team {node.name!r}", changes=False)
    shows_emails = access.may(context.requester, Action.MEMBER_READ_EMAIL, team) or bool(
        with_defaults(access.accounts.settings.all())["members_see_emails"]
    )
    return [
        {
            "id": node_id("User", row.user_id),
            "admin": row.role == "admin",
            "pending": False,
            "email": row.address if shows_emails else None,
            "username": row.name,
            "name": row.display_name or row.name,
            "accountType": row.role,
            "role": row.role,
        }
        for row in access.accounts.members.of_team(node.name)
    ]


def _constant(type_name: str, field: str, value: object) -> None:
    """Declare a field that is the same for everyone."""

    async def constant(_: object, info: Info) -> object:
        return value

    PROJECT_READS.field(type_name, field)(constant)


_constant("Entity", "readOnlyAdmin", False)
_constant("Entity", "privateOnly", False)
_constant("Entity", "storageBytes", 0)
_constant("Entity", "codeSavingEnabled", True)
_constant("Entity", "defaultAccess", "PRIVATE")
_constant("Entity", "available", True)
_constant("Entity", "readOnly", False)
