"""`/projects/{project}/sweeps`: searches for the best parameters over many runs."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, HTTPException, Path
from pydantic import AfterValidator, Field

from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.artifacts.routes.artifacts import TheProjectNumber
from runvitals.server.database.stored_json import stored_object
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.projects.storage.projects import NOBODY
from runvitals.server.runs.routes.parameters import ProjectNumber
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.sweeps import control
from runvitals.server.sweeps.commands import LOST_MS
from runvitals.server.sweeps.configuration import InvalidConfiguration, shown_configuration
from runvitals.server.sweeps.sources import from_json
from runvitals.server.sweeps.storage.rows import NewSweep, State, Sweep, SweepConflict

MAX_PRIOR_RUNS: Final = 1000
PATHS: Final = ("/entities/{entity}/projects/{project}/sweeps", "/projects/{project:path}/sweeps")
READS: Final = [needs("sweep:read")]

router = Router()


class SweepConfigurationSent(RequestBody):
    """The configuration of a sweep to be created."""

    configuration: dict[str, Any] = Field(
        description="As for `runvitals.sweep` and `wandb.sweep`: method, metric, parameters."
    )
    name: Annotated[str, AfterValidator(partial(without_hidden_characters, "name"))] | None = Field(
        None, max_length=256, description="What to call it."
    )
    prior_runs: list[Annotated[str, Field(max_length=256)]] = Field(
        default_factory=list,
        max_length=MAX_PRIOR_RUNS,
        description="Ids of runs of the project that join the sweep, which learns from them.",
    )


class SweepSchema(ResponseBody):
    """A sweep, with its best run."""

    id: str = Field(description="What agents and filters know it by: `sweep:ID`.")
    name: str
    state: State
    method: str
    metric: str | None
    goal: Literal["minimize", "maximize"] | None = Field(description="What is better of the metric.")
    configuration: dict[str, Any]
    best: float | None = Field(description="The best value of the metric, of the runs that have ended.")
    best_run: str | None = Field(description="The run that has it.")
    agents: int = Field(description="Agents that were heard from within five minutes.")
    runs: int
    expected_runs: int | None = Field(description="None: it goes on until somebody stops it.")
    created_ms: int
    changed_ms: int
    may: list[str] = Field(description="What the user may do with it: `sweep:control`, `sweep:delete`.")


SweepsPage = page_body("SweepsPage", "A page of sweeps, the newest first.", sweeps=list[SweepSchema])


def the_sweep(
    project: TheProjectNumber, sweep: Annotated[str, Path(max_length=64)], access: TheAccess
) -> Sweep:
    """Return the sweep of the path, or raise 404."""
    row = access.metadata_store.sweeps.sweeps.named(project, sweep)
    if row is None:
        raise HTTPException(404, f"there is no sweep {sweep!r} in the project")
    return row


TheSweep = Annotated[Sweep, Depends(the_sweep)]


def read_sweeps(project: TheProjectNumber, page: ThePage, access: TheAccess, requester: TheRequester) -> Any:
    """The sweeps of a project, the newest first."""
    rows, total = access.metadata_store.sweeps.sweeps.of_project(project, page.after_id, page.limit)
    return stored_page("sweeps", [_to_response(access, requester, row) for row in rows], total, page)


def _project_of_new(
    project: Annotated[str, Path(max_length=256)], number: ProjectNumber, access: TheAccess
) -> int:
    """Return the number of the project of the path, or raise HTTPException 422 for an invalid name.

    On a server without accounts a new project begins with a sweep as with a run.
    """
    if number is not None:
        return number
    with answering(422):
        return access.metadata_store.projects.ensure(project, NOBODY, access.clock())


def create_sweep(
    project: Annotated[int, Depends(_project_of_new)],
    sent: SweepConfigurationSent,
    access: TheAccess,
    requester: TheRequester,
) -> Any:
    """Make a sweep. Agents then start its runs."""
    try:
        source = from_json(sent.configuration)
    except InvalidConfiguration as error:
        raise InvalidFields(dict(map(_field_problem, error.problems))) from None
    prior = [_prior_run(access, requester, project, run_id) for run_id in sent.prior_runs]
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
    row = access.metadata_store.sweeps.sweeps.create(new, access.clock())
    for run in prior:
        access.metadata_store.sweeps.runs.begin(row.id, run.uid, run.run_id, access.clock())
    return _to_response(access, requester, access.metadata_store.sweeps.sweeps.get(row.id))


def _field_problem(problem: str) -> tuple[str, str]:
    """Return the field that a problem of a configuration is about, and the problem."""
    where, colon, what = problem.partition(": ")
    return (f"configuration.{where}", what) if colon else ("configuration", problem)


def _prior_run(access: AccessControl, requester: Requester, project: int, run_id: str) -> RunPlace:
    """A run of a project that the requester may read.

    Raises:
        InvalidFields: there is none.
    """
    for prior in access.metadata_store.runs.places(run_id):
        if prior.project_id == project and not prior.deleted:
            if prior.entity_id is None:
                return prior
            item = ProjectItem(
                "run",
                prior.run_id,
                access.directory.project(project),
                prior.author_id,
                prior.service_account_id,
            )
            if access.may(requester, Action.RUN_READ, item):
                return prior
    raise InvalidFields({"prior_runs": f"there is no run {run_id[:100]!r} in the project"})


def read_sweep(sweep: TheSweep, access: TheAccess, requester: TheRequester) -> Any:
    """A sweep."""
    return _to_response(access, requester, sweep)


def order_sweep(sweep: TheSweep, order: control.Order, access: TheAccess, requester: TheRequester) -> Any:
    """Pause, resume, stop or cancel a sweep.

    Paused: agents get no runs. Stopped: agents end after their runs. Cancelled: they end with their runs.
    """
    control.require(access, requester, Action.SWEEP_CONTROL, sweep)
    with answering(409, SweepConflict):
        row = control.order(access, sweep, order)
    control.record(access, requester, row, "sweep.control", {"state": row.state})
    return _to_response(access, requester, row)


def delete_sweep(sweep: TheSweep, access: TheAccess, requester: TheRequester) -> None:
    """Delete a sweep. Its runs stay; its agents end after theirs."""
    control.require(access, requester, Action.SWEEP_DELETE, sweep)
    access.metadata_store.sweeps.sweeps.delete(sweep.id)
    control.record(access, requester, sweep, "sweep.delete", None)


def _to_response(access: AccessControl, requester: Requester, row: Sweep) -> dict[str, Any]:
    configuration, store = shown_configuration(row.configuration), access.metadata_store
    metric, runs = configuration.metric, store.sweeps.runs
    best = None if metric is None else runs.best(row.id, metric.minimizes)
    best_run = None if best is None or best.run_id is None else store.runs.place(best.run_id)
    goal = None if metric is None else "minimize" if metric.minimizes else "maximize"
    return {
        "id": row.name,
        "name": row.display_name or configuration.name or row.name,
        "state": row.state,
        "method": configuration.method,
        "metric": None if metric is None else metric.name,
        "goal": goal,
        "configuration": stored_object(row.configuration, f"the sweep {row.name}"),
        "best": None if best is None else best.value,
        "best_run": None if best_run is None else best_run.uid,
        "agents": store.sweeps.agents.count_since(row.id, access.clock() - LOST_MS),
        "runs": runs.count(row.id),
        "expected_runs": configuration.expected_runs,
        "created_ms": row.created_ms,
        "changed_ms": row.changed_ms,
        "may": control.may(access, requester, row),
    }


for _path in PATHS:
    router.add_api_route(_path, read_sweeps, response_model=SweepsPage, dependencies=READS)
    router.add_api_route(
        _path,
        create_sweep,
        methods=["POST"],
        status_code=201,
        response_model=SweepSchema,
        dependencies=[needs("sweep:create")],
    )
    router.add_api_route(_path + "/{sweep}", read_sweep, response_model=SweepSchema, dependencies=READS)
    # Whose sweep it is decides: the routes check that themselves.
    router.add_api_route(
        _path + "/{sweep}", delete_sweep, methods=["DELETE"], status_code=204, dependencies=READS
    )
    router.add_api_route(
        _path + "/{sweep}/{order}",
        order_sweep,
        methods=["POST"],
        response_model=SweepSchema,
        dependencies=READS,
    )
