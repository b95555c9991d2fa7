"""The projects of a team or user that a requester may read."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Visibility
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.projects.storage.project_members import ListedProject


class ListedProjectSchema(ResponseBody):
    """A project in a list. `deleted_ms` is there in the trash only."""

    name: str
    entity: str
    visibility: Visibility
    owner: str | None
    runs: int = Field(description="Without those in the trash.")
    newest_ms: int | None
    created_ms: int
    deleted_ms: int | None = None


ListedProjectsPage = page_body(
    "ListedProjectsPage", "A page of projects, by name.", projects=list[ListedProjectSchema]
)


def readable_projects(
    access: AccessControl, requester: Requester, entity_id: int, deleted: bool = False
) -> list[ListedProject]:
    """The readable projects, the one with the newest run first; or those in the trash."""
    projects = access.directory.projects_of(entity_id)
    return [
        listed
        for listed in access.accounts.project_members.of_entity(entity_id, deleted)
        if not is_registry(listed.name)
        and (project := projects.get(listed.id))
        and access.may(requester, Action.PROJECT_READ, project)
    ]


def project_json(entity: str, project: ListedProject) -> dict[str, Any]:
    """Return the fields of a `ListedProjectSchema`. `entity`: the name of the team or user."""
    return {
        "name": project.name,
        "entity": entity,
        "visibility": project.visibility,
        "owner": project.owner,
        "runs": project.runs,
        "newest_ms": project.newest_ms,
        "created_ms": project.created_ms,
        **({} if project.deleted_ms is None else {"deleted_ms": project.deleted_ms}),
    }
