"""Projects that clients name before they exist."""

from __future__ import annotations

from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.principals import User
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project
from runvitals.server.projects.storage.projects import NOBODY


def ensured_project(context: GraphQLContext, name: str, entity_name: str | None) -> ProjectNode:
    """The project with a name, for what begins with it; it is created if it does not exist.

    Raises:
        HTTPException: 401, 403 or 404.
    """
    found = find_project(context, name, entity_name)
    if found is not None:
        return found
    entity = context.entity_named(entity_name)
    now_ms = context.now_ms()
    if entity.number is None:
        number = context.metadata_store.projects.ensure(name, NOBODY, now_ms)
        return ProjectNode(number, name, entity, None)
    owner, principal = context.access.directory.entity(entity.number), context.requester.principal
    what = f"project {name[:100]!r}"
    context.access.require(context.requester, Action.PROJECT_CREATE, owner, what)
    if context.access.directory.project_named(entity.number, name) is not None:
        context.access.hide(context.requester, what)
    author_id = principal.id if isinstance(principal, User) else None
    owned = context.access.accounts.owned_projects
    owned.create(entity.number, name, context.requester.actor, now_ms, owner_id=author_id)
    context.access.rights_changed()
    made = find_project(context, name, entity.name)
    if made is None:
        raise HTTPException(403, f"you may not read {what}")
    return made
