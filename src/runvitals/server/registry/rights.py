"""What a requester may do in a registry, as the tables of artifacts take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.principals import Operator
from runvitals.server.access.resources import Visibility
from runvitals.server.artifacts.storage.protection import NOBODY, Changer
from runvitals.server.artifacts.storage.rows import Collection
from runvitals.store.errors import LinkRefused

if TYPE_CHECKING:
    from runvitals.server.access.control import AccessControl
    from runvitals.server.access.requester import Requester


def changer_of(access: AccessControl, requester: Requester, project_id: int) -> Changer:
    """Return the requester as who changes collections of a project, which may be a registry."""
    if isinstance(requester.principal, Operator):
        return NOBODY
    project = access.directory.project(project_id)
    may = project.is_registry and access.may(requester, Action.REGISTRY_PROTECTED_ALIAS, registry_of(project))
    return Changer(requester.actor, may)


def check_source(
    access: AccessControl, requester: Requester, source: Collection, target_project_id: int
) -> None:
    """Check that a version may be linked to a project: who reads that one reads the version's files there.

    Within its own project it may, and where there are no accounts.

    Raises:
        LinkRefused: the project is restricted, and the requester neither owns nor administers it; the
            text names who does.
    """
    if source.project_id == target_project_id or isinstance(requester.principal, Operator):
        return
    project = access.directory.project(source.project_id)
    if project.is_registry or project.visibility not in (Visibility.RESTRICTED, Visibility.PRIVATE):
        return
    if access.may(requester, Action.PROJECT_MANAGE_MEMBERS, project):
        return
    owner = access.accounts.owned_projects.get(project.id).owner
    admins = [
        row.name
        for row in access.accounts.members.of_teams([project.entity.id]).get(project.entity.id, ())
        if row.role == "admin"
    ]
    names = ", ".join(dict.fromkeys([*([owner] if owner else []), *admins]))
    raise LinkRefused(
        f"the project {source.project!r} is {project.visibility.value}: who reads the registry would read "
        f"its files, so only {names or 'its administrators'} may link out of it",
    )
