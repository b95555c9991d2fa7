"""Who may administer a registry, and who can be a member of one."""

from __future__ import annotations

from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.principals import Access, User
from runvitals.server.registry.routes.parameters import NamedRegistry
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
