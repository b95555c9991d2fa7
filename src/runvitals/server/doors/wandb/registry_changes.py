"""Creates, changes and deletes registries, and gives people roles there, as wandb's client does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from fastapi import HTTPException

from runvitals.model.errors import UnknownProject
from runvitals.model.registry_names import is_registry, registry_name
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.resources import Entity, Registry
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.doors.wandb.artifact_requests import Input, project_named, valid
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.registry.routes.members import check_has_members
from runvitals.server.registry.routes.parameters import NamedRegistry
from runvitals.server.registry.routes.registry_people import (
    teams_of,
    the_team,
    the_user,
    who_may_administer,
)
from runvitals.server.registry.storage.registry_members import RegistryRole
from runvitals.store.errors import LimitReached, NameTaken, NotFound

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REGISTRY_CHANGES: Final = Resolvers("registry_changes")
_MAX_MEMBERS: Final = 1000
"""The most that are shown, and that one request adds."""
_ROLES: Final[dict[str, RegistryRole]] = {"admin": "admin", "member": "member", "viewer": "viewer"}


def upsert_registry(context: GraphQLContext, input: Input) -> dict[str, Any]:
    """Create a registry, or change what one says, who reads it and what it takes."""
    access, table = context.access, context.metadata_store.registries
    entity_name, name = input.get("entity_name") or context.default_entity().name, input["name"]
    owner = access.directory.owner_named(entity_name)
    if owner is None:
        raise HTTPException(404, f"there is no entity {entity_name[:100]!r}")
    visibility = _visibility(owner, input.get("access"))
    types = None
    if input.get("allow_all_artifact_types_in_registry"):
        types = []
    elif input.get("artifact_types"):
        types = [row["name"] for row in input["artifact_types"]]
    present = find_project(context, name, entity_name)
    if present is None:
        new = Registry(0, owner, shared=owner.organisation)
        action = Action.REGISTRY_MANAGE_ADMINS if owner.organisation else Action.REGISTRY_LINK
        access.require(context.requester, action, new, f"entity {entity_name[:100]!r}")
        now_ms = context.now_ms()
        number = access.accounts.ensure_organisation(now_ms) if owner.organisation else owner.id
        project_owner = ProjectOwner(number, context.requester.user_id, visibility or "team")
        text, by = input.get("description") or "", Changer(context.requester.actor)
        _valid(table.create, project_owner, registry_name(name), text, now_ms, by, types or [])
    else:
        registry = _registry(context, present)
        if types is not None:  # the client sends only those that it adds
            types = sorted({*table.types(present.number), *types}) if types else []
        changes = {"description": input.get("description"), "visibility": visibility, "types": types}
        _change(registry, {field: value for field, value in changes.items() if value is not None})
    access.rights_changed()
    node = find_project(context, name, entity_name)
    return {"project": node, "model": node, "inserted": present is None}


def _visibility(owner: Entity, access: str | None) -> str | None:
    """Return the visibility that a client means; to it, a team is the organization of its registries."""
    if access is None:
        return None
    if access == "PRIVATE":
        return "organisation" if owner.organisation else "team"
    if access == "RESTRICTED" and owner.organisation:
        return "restricted"
    if access == "RESTRICTED":
        raise InvalidArgument(
            "the members of a team read its registries; one of the organisation can be restricted"
        )
    raise InvalidArgument(f"unknown access {access[:60]!r}; expected PRIVATE or RESTRICTED")


def _change(registry: NamedRegistry, changes: dict[str, Any]) -> None:
    """Change what differs: all but the description needs the right to manage the registry."""
    table, row = registry.access.metadata_store.registries, registry.row
    stored_values = {
        "name": row.name,
        "description": row.description,
        "visibility": row.visibility,
        "types": table.types(row.id),
    }
    # A registry of a team that the organisation reads has no word in wandb: it stays so.
    if row.visibility == "organisation" and changes.get("visibility") == "team":
        del changes["visibility"]
    changed = {field: value for field, value in changes.items() if value != stored_values[field]}
    narrow = changed.keys() <= {"description"}
    action = Action.REGISTRY_LINK if narrow else Action.REGISTRY_MANAGE_ADMINS
    registry.access.require(registry.requester, action, registry.resource, f"registry {row.name!r}")
    _valid(table.change, row.id, registry.now_ms, registry.changer, **changed)


def _valid(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return valid(function, *args, **kwargs)
    except (NameTaken, LimitReached, NotFound) as error:
        raise InvalidArgument(str(error)) from None


def _registry(context: GraphQLContext, node: ProjectNode | None) -> NamedRegistry:
    """Return the registry that a project is; raise InvalidArgument if it is none."""
    if node is None or node.resource is None or not is_registry(node.name):
        raise InvalidArgument("there is no such registry; on a server without accounts they have no members")
    row = context.metadata_store.registries.get(node.number)
    return NamedRegistry(row, registry_of(node.resource), context.access, context.requester)


def _managed(context: GraphQLContext, id: str) -> NamedRegistry:
    """Return the registry with an id, whose administrators the requester may choose."""
    number, what = number_of("Project", id), f"registry with the id {id[:100]!r}"
    try:
        project = context.access.directory.project(number)
        row = context.metadata_store.registries.get(number)
    except (NotFound, UnknownProject):
        context.access.hide(context.requester, what)
    registry = NamedRegistry(row, registry_of(project), context.access, context.requester)
    context.access.require(context.requester, Action.REGISTRY_MANAGE_ADMINS, registry.resource, what)
    return registry


@REGISTRY_CHANGES.field("Mutation", "renameProject")
def rename_project(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Give a registry another name."""
    context: GraphQLContext = info.context
    new, entity_name = input["new_project_name"], input["entity_name"]
    registry = _registry(context, project_named(context, input["old_project_name"], entity_name))
    if not is_registry(new):
        raise InvalidArgument("the name of a registry begins with wandb-registry-")
    _change(registry, {"name": registry_name(new)})
    context.access.rights_changed()
    node = find_project(context, new, entity_name)
    return {"project": node, "model": node, "inserted": False}


@REGISTRY_CHANGES.field("Mutation", "deleteModel")
def delete_registry(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Delete a registry with its collections; versions stay in the projects that logged them."""
    context: GraphQLContext = info.context
    registry = _managed(context, input["id"])
    table = context.metadata_store.registries
    _valid(table.delete, registry.row.id, context.now_ms(), registry.changer)
    context.access.rights_changed()
    return {"success": True}


# People


@REGISTRY_CHANGES.field("Project", "members")
def members(node: ProjectNode, info: Info) -> list[dict[str, Any]]:
    """Return who has a role in a registry: its administrators first."""
    people = _people(_registry(info.context, node))
    info.context.count_rows(len(people))
    return [
        {
            "id": node_id("User", user_id),
            "username": name,
            "name": display_name or name,
            "role": {"name": role},
        }
        for user_id, (name, display_name, role) in people.items()
    ]


def _people(registry: NamedRegistry) -> dict[int, tuple[str, str, str]]:
    """Return the name, shown name and role of who has one, by user."""
    store, owner = registry.access.metadata_store, registry.resource.team
    admins = store.registries.admins(registry.row.id)
    people = {row.user_id: (row.name, row.display_name, "admin") for row in admins}
    if owner.organisation:
        for member in store.registry_members.page(registry.row.id, 0, _MAX_MEMBERS)[0]:
            people.setdefault(member.id, (member.name, member.display_name, member.role))
    else:
        for row in registry.access.accounts.members.of_teams([owner.id]).get(owner.id, ()):
            role = "viewer" if row.role == Role.VIEWER.value else "member"
            people.setdefault(row.user_id, (row.name, row.display_name, role))
    return people


@REGISTRY_CHANGES.field("Project", "teamMembers")
def team_members(node: ProjectNode, info: Info) -> list[dict[str, Any]]:
    """Return the teams with a role in a registry of the organisation; otherwise the team that keeps it."""
    registry = _registry(info.context, node)
    if registry.resource.team.organisation:
        teams = teams_of(registry)[:_MAX_MEMBERS]
        info.context.count_rows(len(teams))
        return [{"team": EntityNode(row.id, row.name), "role": {"name": row.role}} for row in teams]
    if registry.resource.team.owner_id is not None:
        return []
    team = EntityNode(registry.resource.team.id, node.entity.name)
    return [{"team": team, "role": {"name": "member"}}]


@REGISTRY_CHANGES.field("Mutation", "createProjectMembers")
def add_members(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Add users and teams to a registry of the organisation, as viewers."""
    context: GraphQLContext = info.context
    registry = _managed(context, input["project_id"])
    users, teams = _ids(input, "User"), _ids(input, "Entity")
    present, present_teams = _people(registry), {row.id for row in teams_of(registry)}
    for user_id in users:
        if user_id not in present:
            _set_role(registry, user_id, "viewer")
    for team_id in teams:
        if team_id not in present_teams:
            _set_team_role(registry, team_id, "viewer")
    context.access.rights_changed()
    return {"success": True}


@REGISTRY_CHANGES.field("Mutation", "deleteProjectMembers")
def remove_members(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Take the roles in a registry from users and teams."""
    context: GraphQLContext = info.context
    registry = _managed(context, input["project_id"])
    users, teams = _ids(input, "User"), _ids(input, "Entity")
    for user_id in users:
        _set_role(registry, user_id, None)
    for team_id in teams:
        _set_team_role(registry, team_id, None)
    context.access.rights_changed()
    return {"success": True}


@REGISTRY_CHANGES.field("Mutation", "updateProjectMember")
def update_member(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Give a user a role in a registry."""
    context: GraphQLContext = info.context
    registry = _managed(context, input["project_id"])
    role = _role(input["user_project_role"])
    _set_role(registry, number_of("User", input["user_id"]), role)
    context.access.rights_changed()
    return {"success": True}


@REGISTRY_CHANGES.field("Mutation", "updateProjectTeamMember")
def update_team_member(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Give a team a role in a registry."""
    context: GraphQLContext = info.context
    registry = _managed(context, input["project_id"])
    role = _role(input["team_project_role"])
    _set_team_role(registry, number_of("Entity", input["team_id"]), role)
    context.access.rights_changed()
    return {"success": True}


def _role(name: str) -> RegistryRole:
    if name not in _ROLES:
        raise InvalidArgument(f"unknown role {name[:60]!r}; expected one of {', '.join(_ROLES)}")
    return _ROLES[name]


def _ids(input: Input, kind: Literal["User", "Entity"]) -> list[int]:
    ids = input.get("user_ids" if kind == "User" else "team_ids") or []
    if len(ids) > _MAX_MEMBERS:
        raise InvalidArgument(f"{len(ids):,} members; expected at most {_MAX_MEMBERS:,}")
    return [number_of(kind, id) for id in ids]


def _set_team_role(registry: NamedRegistry, team_id: int, role: RegistryRole | None) -> None:
    """Give a team a role in a registry; None: none.

    Raises:
        InvalidArgument: there is no such team, or the registry is a team's.
    """
    check_has_members(registry)
    table, names = registry.access.metadata_store.registry_teams, registry.access.accounts.entity_names
    the_team(registry, names([team_id]).get(team_id, ""))
    if role is None:
        _valid(table.remove, registry.row.id, team_id, registry.now_ms, registry.changer)
    else:
        _valid(table.put, registry.row.id, team_id, role, registry.now_ms, registry.changer)


def _set_role(registry: NamedRegistry, user_id: int, role: str | None) -> None:
    """Give a user a role in a registry; None: none.

    Raises:
        InvalidArgument: there is no such user, or a role that the registry of a team does not give.
    """
    store, now_ms, by = registry.access.metadata_store, registry.now_ms, registry.changer
    row = _valid(registry.access.accounts.users.get, user_id)
    is_admin = row.name in store.registries.admin_names(registry.row.id)
    has_members = registry.resource.team.organisation
    if role == "admin":
        if not is_admin:
            who_may_administer(registry, row.name)
            _valid(store.registries.add_admin, registry.row.id, user_id, row.name, now_ms, by)
        return
    if not has_members and not is_admin:
        raise InvalidArgument("the members of this registry are those of its team: change their role there")
    if is_admin:
        _valid(store.registries.remove_admin, registry.row.id, row.name, now_ms, by)
    if has_members and role is not None:
        the_user(registry, row.name)
        _valid(store.registry_members.put, registry.row.id, user_id, role, now_ms, by)
    elif has_members and (not is_admin or user_id in _people(registry)):
        _valid(store.registry_members.remove, registry.row.id, user_id, now_ms, by)
