"""`/runs/{run}/move`: moves runs between teams. `PATCH /runs/{run}` moves them within one."""

from __future__ import annotations

from fastapi import HTTPException, Request
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Visibility
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import RunNumber
from runvitals.server.runs.routes.project_parameters import refresh_runs
from runvitals.server.service_parameters import TheAccess, TheRequester


class ProjectOfRun(RequestBody):
    """The project to which a run moves."""

    entity: str = Field(max_length=64, description="A team or user.")
    project: str = Field(max_length=256, description="One of its projects.")


class MovedRun(ResponseBody):
    """Where a run is after it was moved."""

    run: str
    entity: str
    project: str


router = Router()


@router.post("/runs/{run}/move", needs("run:move"), response_model=MovedRun)
def move_run(
    run: str,
    body: ProjectOfRun,
    number: RunNumber,
    access: TheAccess,
    requester: TheRequester,
    request: Request,
) -> MovedRun:
    """Move a run to a project of another team, or of the requester's own space. Its author stays."""
    rows = {} if number is None else access.metadata_store.runs.get([number], access.clock())
    if number is None or number not in rows:
        raise HTTPException(404, f"there is no run {run!r}")
    source = access.directory.project(rows[number].project_id)
    owner = access.directory.entity_named(body.entity)
    target = None if owner is None else access.directory.project_named(owner.id, body.project)
    what = f"project {f'{body.entity}/{body.project}'!r}"
    if target is None:
        access.hide(requester, what)
    access.require(requester, Action.RUN_CREATE, target, what)
    if source.visibility is Visibility.RESTRICTED and target.entity.id != source.entity.id:
        raise HTTPException(409, "a run of a restricted project stays in its team")
    access.accounts.owned_projects.move_run(number, target.id, requester.actor, access.clock())
    access.rights_changed()
    refresh_runs(request)
    return MovedRun(run=run, entity=body.entity, project=body.project)
