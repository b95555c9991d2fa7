"""`/projects/{project}`: rename and delete projects. Without accounts names may have slashes.

Their routes come after all others: `digits/artifacts/mnist` is no name.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from starlette.concurrency import run_in_threadpool

from runvitals.model.names import PROJECT_NAME_ALLOWED, can_be_created
from runvitals.server.access.permission import needs, recording
from runvitals.server.http.bodies import ErrorAnswer
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.responses import EDIT_ERRORS, INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import (
    ProjectNumber,
    TheEditableLibrary,
)
from runvitals.server.services import services_of, shared_services_of

ProjectName = Annotated[str, Path(description="The project's name.", max_length=256)]
_ERRORS: dict[int | str, dict[str, Any]] = {
    **INVALID_PARAMETER,
    **EDIT_ERRORS,
    404: {"model": ErrorAnswer, "description": "There is no such project."},
}

router = Router()


@router.patch(
    "/projects/{project:path}", needs("project:update"), response_model=models.ProjectDone, responses=_ERRORS
)
async def rename_project(
    request: Request,
    project: ProjectName,
    changes: models.ProjectChanges,
    library: TheEditableLibrary,
    number: ProjectNumber,
) -> Any:
    """Rename a project. Runs that arrive later under the old name are in a new project."""
    if not can_be_created(changes.name):
        expected = f"invalid project name {changes.name!a}; expected {PROJECT_NAME_ALLOWED}"
        raise InvalidFields({"name": expected})
    with answering(409):
        recorded = recording(request, "project.update", fields=["name"])
        await library.rename_project(project, changes.name, number, recorded)
    return {"project": changes.name, "done": "rename"}


@router.delete(
    "/projects/{project:path}", needs("project:delete"), response_model=models.ProjectDone, responses=_ERRORS
)
async def delete_project(
    request: Request, project: ProjectName, library: TheEditableLibrary, number: ProjectNumber
) -> Any:
    """Move all runs of a project to the trash, as `DELETE /runs/{run}` does with one.

    On a server with accounts the project itself goes there too, as by
    `DELETE /entities/{entity}/projects/{project}`.
    """
    changes = services_of(request).changes
    runs = None if changes is None else await run_in_threadpool(changes.trash_project, request)
    if runs is None:
        runs = await library.delete_project(project, number)
    else:
        shared_services_of(request).library.refresh()
    return {"project": project, "done": "delete", "runs": runs}
