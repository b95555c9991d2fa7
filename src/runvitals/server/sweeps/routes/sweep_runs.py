"""`/projects/{project}/sweeps/{sweep}/runs` and `/agents`: the runs of a sweep, and what starts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Path, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from runvitals.model.run_state import State
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import answering
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.service_parameters import TheAccess
from runvitals.server.services import shared_services_of
from runvitals.server.sweeps.commands import MAX_REPORTED, AgentCommands, Command
from runvitals.server.sweeps.configuration import stored_configuration
from runvitals.server.sweeps.outcomes import values_so_far
from runvitals.server.sweeps.routes.sweeps import PATHS, READS, TheSweep
from runvitals.server.sweeps.storage.rows import UNENDED, SweepAgent, SweepRun, UnknownSweep
from runvitals.server.sweeps.storage.runs import RunOutcome

router = Router()


class EndingSchema(ResponseBody):
    """How a run of a sweep ended."""

    state: State
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None


class SweepRunSchema(ResponseBody):
    """A run of a sweep. Without `run` it has not begun, or is deleted."""

    id: str = Field(description="The id that the sweep has given the run.")
    run: str | None = Field(description="The id of the run; None before it has begun.")
    name: str | None
    ending: EndingSchema | None
    started_ms: int | None
    duration_ms: int | None
    waits: bool = Field(description="An agent is to start it, and has not yet.")
    parameters: dict[str, Any] = Field(description="Nested as in the configuration; empty: not known yet.")
    value: float | None = Field(description="Of the sweep's metric; of a run that has not ended, so far.")
    created_ms: int


SweepRunsPage = page_body("SweepRunsPage", "A page of runs of a sweep.", runs=list[SweepRunSchema])


class SweepAgentSent(RequestBody):
    """An agent that begins to work on a sweep."""

    host: str = Field(max_length=256, description="Where it runs.")


class SweepAgentSchema(ResponseBody):
    """An agent, by its id."""

    id: str


class AgentReport(RequestBody):
    """An agent's report of the runs that it started."""

    running: list[Annotated[str, Field(max_length=128)]] = Field(
        max_length=MAX_REPORTED, description="The ids of the runs that the agent has."
    )
    ends: bool = Field(False, description="The agent wants no more runs.")


class AgentCommand(ResponseBody):
    """A command to an agent."""

    do: Literal["run", "stop", "exit"] = Field(
        description="`run`: start a run; `stop`: end one; `exit`: end. Without any, report again in seconds."
    )
    run: str | None = Field(None, description="The id of the run.")
    parameters: dict[str, Any] = Field({}, description="Of a run that begins.")
    program: str | None = Field(None, description="What the configuration says to start.")


class AgentCommandsSchema(ResponseBody):
    """The next commands to an agent."""

    commands: list[AgentCommand]


def the_agent(
    sweep: TheSweep, agent: Annotated[str, Path(pattern="^[0-9]{1,18}$")], access: TheAccess
) -> SweepAgent:
    """Return the agent of the path, or raise 404."""
    row = access.metadata_store.sweeps.agents.get(int(agent))
    if row is None or row.sweep_id != sweep.id:
        raise HTTPException(404, f"the sweep {sweep.name!r} has no agent {agent}")
    return row


TheSweepAgent = Annotated[SweepAgent, Depends(the_agent)]


def read_runs(sweep: TheSweep, page: ThePage, access: TheAccess) -> Any:
    """The runs of a sweep with their parameters, the newest first."""
    store = access.metadata_store
    rows = store.sweeps.runs.page(sweep.id, page.after_id, page.limit)
    runs = store.runs.get([row.run_id for row in rows if row.run_id is not None], access.clock())
    unended = [row for row in rows if row.state in UNENDED]
    so_far = values_so_far(store, stored_configuration(sweep.configuration), unended)
    responses = [_to_response(row, runs, so_far.get(row.id)) for row in rows]
    return stored_page("runs", responses, store.sweeps.runs.count(sweep.id), page)


def _to_response(row: SweepRun, runs: Mapping[int, RunRow], so_far: RunOutcome | None) -> dict[str, Any]:
    run = None if row.run_id is None else runs.get(row.run_id)
    if run is not None and run.deleted_ms is not None:
        run = None
    parameters = row.parameters or (None if so_far is None else so_far.parameters)
    return {
        "id": row.run_name,
        "run": None if run is None else run.uid,
        "name": None if run is None else run.name,
        "ending": None if run is None else run.ending.as_dict(),
        "started_ms": None if run is None else run.started_ms,
        "duration_ms": None if run is None else run.duration_ms,
        "waits": row.state == "assigned",
        "parameters": parameters or {},
        "value": row.value if so_far is None else so_far.value,
        "created_ms": row.created_ms,
    }


def add_agent(sweep: TheSweep, sent: SweepAgentSent, access: TheAccess) -> Any:
    """Register a process that starts runs of the sweep."""
    try:
        agent = access.metadata_store.sweeps.agents.add(sweep.id, sent.host, access.clock())
    except UnknownSweep as error:  # deleted a moment ago
        raise HTTPException(404, str(error)) from None
    return {"id": str(agent.id)}


async def report(
    sweep: TheSweep, agent: TheSweepAgent, sent: AgentReport, access: TheAccess, request: Request
) -> Any:
    """Answer an agent's report of every few seconds with what to do next; without runs it gets the next one.

    The same report can be sent again.
    """
    todo = AgentCommands(access.metadata_store, shared_services_of(request).library)
    with answering(404, UnknownSweep):
        if sent.ends:
            commands = await run_in_threadpool(todo.leave, sweep, access.clock())
        else:
            commands = await todo.after(agent, sweep, sent.running, access.clock())
    return {"commands": [_command(command) for command in commands]}


def _command(command: Command) -> dict[str, Any]:
    values = command.get("args", {})
    return {
        "do": command["type"],
        "run": command.get("run_id"),
        "parameters": {name: value["value"] for name, value in values.items()},
        "program": command.get("program"),
    }


_STARTS = [needs("run:create")]
for _path in PATHS:
    _one = _path + "/{sweep}"
    router.add_api_route(_one + "/runs", read_runs, response_model=SweepRunsPage, dependencies=READS)
    router.add_api_route(
        _one + "/agents",
        add_agent,
        methods=["POST"],
        status_code=201,
        response_model=SweepAgentSchema,
        dependencies=_STARTS,
    )
    router.add_api_route(
        _one + "/agents/{agent}/report",
        report,
        methods=["POST"],
        response_model=AgentCommandsSchema,
        dependencies=_STARTS,
    )
