"""The calls that change something: stop a run, throw it away, bring it back, rename and tag it; projects too.

Only a shared server has them: a journal belongs to the run that writes it. A page of another site can make a
browser send a form, but neither JSON nor an `Authorization` header: each of these calls needs one of the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol, runtime_checkable

from fastapi import APIRouter, Depends, HTTPException, Path, Request

from runvitals.journal.paths import check_run_id
from runvitals.query.run_handle import UnknownRun
from runvitals.server.api import models
from runvitals.server.api.parameters import RunId, TheLibrary
from runvitals.store.metadata import UnknownProject

CAPABILITIES = ("stop", "delete", "edit")
"""What `/about` says of a server that has these calls."""


@runtime_checkable
class Controls(Protocol):
    """A library whose runs can be changed."""

    async def stop(self, run_id: str) -> None:
        """Note that a user wants a run to end.

        Raises:
            UnknownRun: there is no such run.
            ValueError: it has ended.
        """

    async def delete(self, run_id: str) -> None:
        """Throw a run away."""

    async def restore(self, run_id: str) -> None:
        """Undo `delete`."""

    async def edit(self, run_id: str, values: dict[str, Any]) -> None:
        """Set the name, notes, tags, group, job_type or project of a run."""

    async def rename_project(self, name: str, new_name: str) -> None:
        """Give a project another name.

        Raises:
            UnknownProject: no run was ever in it.
            ValueError: there is a project of that name.
        """

    async def delete_project(self, name: str) -> int:
        """Throw away all runs of a project; how many those were."""


def controls(request: Request, runs: TheLibrary) -> Controls:
    """The library, as something that can be changed by this request.

    Raises:
        HTTPException: 405 where it cannot be; 403 for a request that a page of another site may have made.
    """
    if not isinstance(runs, Controls):
        raise HTTPException(
            405,
            f"{request.method} {request.url.path}: this server shows the journals of this machine, and only "
            "GET is allowed; a shared one (`runvitals server`) can stop, delete and edit runs",
            {"allow": "GET"},
        )
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and "authorization" not in request.headers:
        raise HTTPException(
            403,
            f"{request.method} {request.url.path}: send `Content-Type: application/json` or an "
            "`Authorization` header, which pages of other sites cannot",
        )
    return runs


TheControls = Annotated[Controls, Depends(controls)]
router = APIRouter(
    responses={
        400: {"model": models.ErrorAnswer, "description": "The body is not valid JSON."},
        403: {"model": models.ErrorAnswer, "description": "Neither JSON nor a token."},
        405: {"model": models.ErrorAnswer, "description": "Not on this machine's own journals."},
        409: {"model": models.ErrorAnswer, "description": "The run has ended; the name is taken."},
    }
)


@router.post("/runs/{run}/stop", response_model=models.Done)
async def stop(run: RunId, library: TheControls) -> Any:
    """Ask a run to end: its training gets a KeyboardInterrupt, as if a user had pressed Ctrl-C."""
    try:
        await library.stop(_checked(run))
    except UnknownRun as error:
        raise HTTPException(404, str(error)) from None
    except ValueError as error:
        raise HTTPException(409, str(error)) from None
    return {"run": run, "done": "stop"}


@router.delete("/runs/{run}", response_model=models.Done)
async def delete(run: RunId, library: TheControls) -> Any:
    """Throw a run away. `POST /runs/{run}/restore` brings it back, until it is removed for good."""
    try:
        await library.delete(_checked(run))
    except UnknownRun as error:
        raise HTTPException(404, str(error)) from None
    return {"run": run, "done": "delete"}


@router.post("/runs/{run}/restore", response_model=models.Done)
async def restore(run: RunId, library: TheControls) -> Any:
    """Restore a run from the trash."""
    try:
        await library.restore(_checked(run))
    except UnknownRun as error:
        raise HTTPException(404, str(error)) from None
    return {"run": run, "done": "restore"}


@router.patch("/runs/{run}", response_model=models.Done)
async def edit(run: RunId, changes: models.RunChanges, library: TheControls) -> Any:
    """Set a run's name, notes, tags, group, job type or project: what is not given stays."""
    try:
        await library.edit(_checked(run), changes.model_dump(exclude_unset=True))
    except UnknownRun as error:
        raise HTTPException(404, str(error)) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return {"run": run, "done": "edit"}


Project = Annotated[str, Path(description="The project's name.", max_length=256)]


@router.patch("/projects/{project:path}", response_model=models.ProjectDone)
async def rename_project(project: Project, changes: models.ProjectChanges, library: TheControls) -> Any:
    """Give a project another name. Runs that come later under the old one are in a new project."""
    try:
        await library.rename_project(project, changes.name)
    except UnknownProject as error:
        raise HTTPException(404, str(error)) from None
    except ValueError as error:
        raise HTTPException(409, str(error)) from None
    return {"project": changes.name, "done": "rename"}


@router.delete("/projects/{project:path}", response_model=models.ProjectDone)
async def delete_project(project: Project, library: TheControls) -> Any:
    """Throw away all runs of a project, as `DELETE /runs/{run}` does with one."""
    try:
        runs = await library.delete_project(project)
    except UnknownProject as error:
        raise HTTPException(404, str(error)) from None
    return {"project": project, "done": "delete", "runs": runs}


def _checked(run: str) -> str:
    try:
        return check_run_id(run)
    except ValueError as error:
        raise HTTPException(404, str(error)) from None
