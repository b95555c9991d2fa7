"""`/teams/{team}/usage`: how much of the server's storage a team takes."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.server.teams.routes.parameters import TheTeam
from runvitals.server.usage.routes.own_usage import StorageUse, storage_limit, storage_use

router = Router()


@router.get("/teams/{team}/usage", needs("storage:read"), response_model=StorageUse)
async def usage(request: Request, team: TheTeam, access: TheAccess, requester: TheRequester) -> Any:
    """Return the storage that the projects of a team take.

    `by_project` names those that the requester may know of; the sums contain all.
    """
    library = shared_services_of(request).library
    projects = await library.storage(team.id)
    project_ids = await run_in_threadpool(_known_projects, access, requester, team.id)
    listed = [project for project in projects if project.project_id in project_ids]
    return storage_use(projects, listed, await run_in_threadpool(storage_limit, access))


def _known_projects(access: AccessControl, requester: Requester, entity_id: int) -> set[int]:
    """The ids of the projects of a team of which the requester may know."""
    projects = access.directory.projects_of(entity_id)
    if access.may(requester, Action.PROJECT_READ_VISIBILITY, access.directory.entity(entity_id)):
        return set(projects)
    return {
        number for number, project in projects.items() if access.may(requester, Action.PROJECT_READ, project)
    }
