"""`/projects/{project}/sweeps`: searches for the best parameters over many runs."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

from runvitals.accounts.actions import Action
from runvitals.accounts.principals import ServiceAccount, User
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.api.entities.artifacts import TheProjectNumber
from runvitals.server.api.listing import ThePage
from runvitals.server.errors import InvalidFields
from runvitals.server.sweeps import control
from runvitals.server.sweeps.sources import from_json, stored_configuration
from runvitals.store.errors import LimitReached
from runvitals.store.metadata.sweeps.rows import NewSweep, State, Sweep, SweepConflict
from runvitals.sweeps.configuration import InvalidConfiguration

_PATHS: Final = ("/entities/{entity}/projects/{project}/sweeps", "/projects/{project:path}/sweeps")
_READS: Final = [needs("sweep:read")]

router = APIRouter()


class SweepConfigurationSent(BaseModel):
    model_config = ConfigDict(extra="forbid")

    configuration: dict[str, Any] = Field(description="As for `wandb.sweep`: method, metric, parameters.")
    name: str | None = Field(None, max_length=256, description="What to call it.")


class SweepSchema(BaseModel):
    id: str = Field(description="What agents and filters know it by: `sweep:ID`.")
    name: str
    state: State
    method: str
    metric: str | None
    configuration: dict[str, Any]
    best: float | None = Field(description="The best value of the metric.")
    runs: int
    expected_runs: int | None = Field(description="None: it goes on until somebody stops it.")
    created_ms: int
    changed_ms: int


class SweepsPage(BaseModel):
    sweeps: list[SweepSchema]
    total: int
    next: str | None


def the_sweep(
    project: TheProjectNumber, sweep: Annotated[str, Path(max_length=64)], access: TheAccess
) -> Sweep:
    """The sweep of the path.

    Raises:
        HTTPException: 404 if there is none.
    """
    found = access.metadata_store.sweeps.sweeps.named(project, sweep)
    if found is None:
        raise HTTPException(404, f"there is no sweep {sweep!r} in the project")
    return found


TheSweep = Annotated[Sweep, Depends(the_sweep)]


def read_sweeps(project: TheProjectNumber, page: ThePage, access: TheAccess) -> Any:
    """The sweeps of a project, the newest first."""
    skip = page.after_id
    rows, total = access.metadata_store.sweeps.sweeps.of_project(project, skip, page.limit)
    end = skip + len(rows)
    following = str(end) if rows and end < total else None
    return {"sweeps": [_shown(access, row) for row in rows], "total": total, "next": following}


def create_sweep(
    project: TheProjectNumber, sent: SweepConfigurationSent, access: TheAccess, requester: TheRequester
) -> Any:
    """Make a sweep. Agents then start its runs."""
    try:
        source = from_json(sent.configuration)
    except InvalidConfiguration as error:
        fields = (problem.partition(": ") for problem in error.problems)
        raise InvalidFields({f"configuration.{where}": what for where, _, what in fields}) from None
    principal = requester.principal
    new = NewSweep(
        project,
        source.yaml,
        source.json,
        seed=secrets.randbits(62),
        display_name=sent.name,
        description=source.configuration.description,
        author_id=principal.id if isinstance(principal, User) else None,
        service_account_id=principal.id if isinstance(principal, ServiceAccount) else None,
    )
    try:
        return _shown(access, access.metadata_store.sweeps.sweeps.create(new, access.clock()))
    except LimitReached as error:
        raise HTTPException(409, str(error)) from None


def read_sweep(sweep: TheSweep, access: TheAccess) -> Any:
    """A sweep."""
    return _shown(access, sweep)


def order_sweep(sweep: TheSweep, order: control.Order, access: TheAccess, requester: TheRequester) -> Any:
    """Pause a sweep: agents get no runs. Resume it. Stop it: agents end after their runs. Cancel it: they end
    with their runs."""
    control.require(access, requester, Action.SWEEP_CONTROL, sweep)
    try:
        row = control.order(access, sweep, order)
    except SweepConflict as error:
        raise HTTPException(409, str(error)) from None
    control.record(access, requester, row, "sweep.control", {"state": row.state})
    return _shown(access, row)


def delete_sweep(sweep: TheSweep, access: TheAccess, requester: TheRequester) -> None:
    """Delete a sweep. Its runs stay; its agents end after theirs."""
    control.require(access, requester, Action.SWEEP_DELETE, sweep)
    access.metadata_store.sweeps.sweeps.delete(sweep.id)
    control.record(access, requester, sweep, "sweep.delete", None)


def _shown(access: AccessControl, row: Sweep) -> dict[str, Any]:
    configuration, runs = stored_configuration(row.configuration), access.metadata_store.sweeps.runs
    metric = configuration.metric
    return {
        "id": row.name,
        "name": row.display_name or configuration.name or row.name,
        "state": row.state,
        "method": configuration.method,
        "metric": None if metric is None else metric.name,
        "configuration": json.loads(row.configuration),
        "best": None if metric is None else runs.best_value(row.id, metric.minimizes),
        "runs": runs.count(row.id),
        "expected_runs": configuration.expected_runs,
        "created_ms": row.created_ms,
        "changed_ms": row.changed_ms,
    }


for _path in _PATHS:
    router.add_api_route(_path, read_sweeps, response_model=SweepsPage, dependencies=_READS)
    router.add_api_route(
        _path,
        create_sweep,
        methods=["POST"],
        status_code=201,
        response_model=SweepSchema,
        dependencies=[needs("sweep:create")],
    )
    router.add_api_route(_path + "/{sweep}", read_sweep, response_model=SweepSchema, dependencies=_READS)
    # Whose sweep it is decides: the routes check that themselves.
    router.add_api_route(
        _path + "/{sweep}", delete_sweep, methods=["DELETE"], status_code=204, dependencies=_READS
    )
    router.add_api_route(
        _path + "/{sweep}/{order}",
        order_sweep,
        methods=["POST"],
        response_model=SweepSchema,
        dependencies=_READS,
    )
