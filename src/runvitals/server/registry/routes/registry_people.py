"""Who may administer a registry, and who can be a member of one."""

from __future__ import annotations

from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.principals import Access, User
from runvitals.server.registry.routes.parameters import NamedRegistry
from runvitals.server.registry.storage.registry_members import MAX_MEMBERS, RegistryMember
from runvitals.store.errors import NotFound


def the_user(registry: NamedRegistry, name: str) -> User:
    """Return an active user by name.

    Raises:
        HTTPException: 422: there is none.
    """
    directory = registry.access.directory
    try:
        user = directory.user(registry.access.accounts.users.by_name(name).id)
    except NotFound:
        user = None
    if user is None or user.state != "active" or user.access is Access.NONE:
        raise HTTPException(422, f"there is no active user {name!r}")
    return user


def the_team(registry: NamedRegistry, name: str) -> int:
    """Return the entity id of a team whose page the requester may see, or which has a role in the registry.

    Raises:
        HTTPException: 422: there is none.
    """
    present = {row.name: row.id for row in teams_of(registry)}
    if name in present:
        return present[name]
    team = registry.access.directory.entity_named(name)
    is_team = team is not None and team.owner_id is None and not team.organisation and not team.deleted
    may_see = team is not None and registry.access.may(registry.requester, Action.TEAM_PROFILE, team)
    if team is None or not is_team or not may_see:
        raise HTTPException(422, f"there is no team {name!r}")
    return team.id


def teams_of(registry: NamedRegistry) -> list[RegistryMember]:
    """Return the teams with a role in a registry, by name: all, or those whose page the requester may see."""
    access = registry.access
    rows, _ = access.metadata_store.registry_teams.page(registry.row.id, 0, MAX_MEMBERS)
    if registry.may(Action.REGISTRY_MANAGE_ADMINS):
        return rows
    teams = access.directory.entity
    return [row for row in rows if access.may(registry.requester, Action.TEAM_PROFILE, teams(row.id))]


def deciders_of(registry: NamedRegistry) -> set[int]:
    """Return the ids of the users who decide about protected aliases, by themselves or by their teams."""
    store = registry.access.metadata_store
    deciders = {admin.user_id for admin in store.registries.admins(registry.row.id)}
    rows, _ = store.registry_teams.page(registry.row.id, 0, MAX_MEMBERS)
    teams = [row.id for row in rows if row.role == "admin"]
    for members in registry.access.accounts.members.of_teams(teams).values():
        deciders |= {member.user_id for member in members if member.role != Role.VIEWER.value}
    return deciders


def who_may_administer(registry: NamedRegistry, name: str) -> int:
    """Return the id of a user who can administer a registry.

    Raises:
        HTTPException: 422: the user is not in the team, or may only look.
    """
    owner = registry.resource.team
    if owner.organisation:
        user, membership = the_user(registry, name), None
    else:
        rows = registry.access.accounts.members.of_teams([owner.id]).get(owner.id, ())
        if name not in {row.name for row in rows}:
            raise HTTPException(422, f"{name!r} is no member of the team")
        user = the_user(registry, name)
        membership = user.teams.get(owner.id)
    if user.access is not Access.FULL:
        raise HTTPException(422, f"{name!r} may only look: the organisation allows them no more")
    if (
        membership is not None
        and membership.role is Role.VIEWER
        and Action.REGISTRY_LINK not in membership.added
    ):
        raise HTTPException(422, f"{name!r} is a viewer of the team: only who may link can administer")
    return user.id
