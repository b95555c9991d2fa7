"""`GET /api/v1/client-links/…`: which run or project an address of wandb's or MLflow's clients means.

Clients make these addresses themselves, from names and ids of their own: the page asks here where they lead.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import HTTPException, Query, Request
from pydantic import BaseModel, Field

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import MlflowError
from runvitals.server.doors.mlflow.experiments import experiments_of
from runvitals.server.doors.mlflow.runs import find_run as find_mlflow_run
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.run_nodes import find_project, find_run
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import access_of

router: Final = Router(prefix="/api/v1/client-links")
_MAX_NAME: Final = 512


class ClientLink(BaseModel):
    """The project or run that an address means."""

    entity: str | None = Field(description="The team or user; null on a server without accounts.")
    project: str
    run: str | None = Field(description="The run id; null: the address is that of a project.")


Name = Annotated[str, Query(max_length=_MAX_NAME)]
OptionalName = Annotated[str | None, Query(max_length=_MAX_NAME)]


@router.get("/wandb", needs("filtered run:read"), response_model=ClientLink)
def wandb_link(request: Request, entity: Name, project: Name, run: OptionalName = None) -> ClientLink:
    """Return the project or run of `/{entity}/{project}/runs/{run}`, as wandb's clients print it."""
    context = GraphQLContext(request)
    node = find_project(context, project, entity)
    if node is None:
        raise HTTPException(404, f"there is no project {project!r}")
    owner = node.entity.name if context.has_accounts else None
    if run is None:
        return ClientLink(entity=owner, project=node.name, run=None)
    row = find_run(context, node, run)
    if row is None:
        raise HTTPException(404, f"there is no run {run!r} in the project {project!r}")
    return ClientLink(entity=row.entity if context.has_accounts else None, project=row.project, run=row.uid)


@router.get("/mlflow", needs("filtered run:read"), response_model=ClientLink)
def mlflow_link(request: Request, experiment: Name, run: OptionalName = None) -> ClientLink:
    """Return the project or run of `/#/experiments/{experiment}/runs/{run}`, as MLflow's clients print it."""
    experiments = experiments_of(request)
    try:
        if run is None:
            experiment_row = experiments.find(experiment)
            return ClientLink(entity=experiment_row.entity, project=experiment_row.project, run=None)
        number = find_mlflow_run(request, run, Action.RUN_READ).run_id
    except MlflowError as error:
        raise HTTPException(404, error.message) from None
    stored_run = access_of(request).metadata_store.runs.place(number)
    if stored_run is None:
        raise HTTPException(404, f"there is no run {run!r}")
    return ClientLink(entity=stored_run.entity, project=stored_run.project, run=stored_run.uid)
