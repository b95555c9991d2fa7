"""Makes and controls sweeps, and tells agents what to do, as wandb's servers do."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from runvitals.model import json_values
from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.doors.wandb.artifact_requests import valid
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_ids import DEFAULT_PROJECT
from runvitals.server.doors.wandb.run_nodes import ProjectNode, ensure_project, find_project, find_run
from runvitals.server.doors.wandb.sweep_nodes import SweepNode, find_sweep
from runvitals.server.sweeps import control
from runvitals.server.sweeps.commands import MAX_REPORTED, AgentCommands
from runvitals.server.sweeps.configuration import InvalidConfiguration
from runvitals.server.sweeps.sources import Source, from_yaml
from runvitals.server.sweeps.storage.rows import NewSweep, Sweep, SweepConflict, UnknownSweep
from runvitals.store.errors import LimitReached

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

SWEEP_CHANGES: Final = Resolvers("sweep_changes")
_ORDERS: Final[Mapping[str, control.Order]] = {
    "RUNNING": "resume",
    "PAUSED": "pause",
    "FINISHED": "stop",
    "CANCELED": "cancel",
}
_MAX_PRIOR: Final = 1000
_EXIT: Final = [{"type": "exit"}]


@SWEEP_CHANGES.field("Mutation", "upsertSweep")
def upsert_sweep(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Make a sweep, or change one. What is null stays as it is."""
    context = info.context
    if input.get("display_name"):
        valid(without_hidden_characters, "name of a sweep", input["display_name"])
    try:
        if input.get("id"):
            node, source = _change(context, input)
        else:
            node, source = _create(context, input)
    except (InvalidConfiguration, SweepConflict, LimitReached) as error:
        raise InvalidArgument(str(error)) from None
    warnings = [] if source is None else list(source.configuration.warnings)
    return {"sweep": node, "configValidationWarnings": warnings}


def _create(context: GraphQLContext, sent: Mapping[str, Any]) -> tuple[SweepNode, Source]:
    if not sent.get("config"):
        raise InvalidArgument("config is missing: the configuration of the sweep, as YAML")
    source = from_yaml(sent["config"])
    prior = _prior_runs(sent)
    project = ensure_project(context, sent.get("project_name") or DEFAULT_PROJECT, sent.get("entity_name"))
    if project.resource is not None:
        what = f"project {project.name!r}"
        context.access.require(context.requester, Action.SWEEP_CREATE, project.resource, what)
    principal = context.requester.principal
    new = NewSweep(
        project.number,
        source.yaml,
        source.json,
        seed=secrets.randbits(62),
        display_name=sent.get("display_name"),
        description=sent.get("description") or source.configuration.description,
        author_id=principal.id if isinstance(principal, User) else None,
        service_account_id=principal.id if isinstance(principal, ServiceAccount) else None,
    )
    runs = {name: _run_id(context, project, name) for name in prior}
    sweeps = context.metadata_store.sweeps
    row = sweeps.sweeps.create(new, context.now_ms())
    for name, run_id in runs.items():
        sweeps.runs.begin(row.id, name, run_id, context.now_ms())
    return SweepNode(sweeps.sweeps.get(row.id), project), source


def _change(context: GraphQLContext, sent: Mapping[str, Any]) -> tuple[SweepNode, Source | None]:
    table, now_ms = context.metadata_store.sweeps.sweeps, context.now_ms()
    node = _sweep_to_change(context, number_of("Sweep", sent["id"]))
    texts = {name: sent[name] for name in ("display_name", "description") if sent.get(name) is not None}
    source, row = None, node.row
    if sent.get("config"):
        source = from_yaml(sent["config"])
        row = table.configure(row.id, source.yaml, source.json, now_ms, **texts)
    elif texts:
        row = table.describe(row.id, now_ms, **texts)
    if sent.get("state"):
        if sent["state"] not in _ORDERS:
            allowed = ", ".join(_ORDERS)
            raise InvalidArgument(f"invalid state {sent['state'][:60]!r}; expected one of {allowed}")
        row = control.order(context.access, row, _ORDERS[sent["state"]])
    control.record(context.access, context.requester, row, "sweep.control", {"state": row.state})
    return SweepNode(row, node.project), source


def _sweep_to_change(context: GraphQLContext, number: int) -> SweepNode:
    what = f"sweep with the id {node_id('Sweep', number)!r}"
    try:
        row = context.metadata_store.sweeps.sweeps.get(number)
    except UnknownSweep:
        context.access.hide(context.requester, what)
    control.require(context.access, context.requester, Action.SWEEP_CONTROL, row, what)
    return SweepNode(row, _project_of(context, row))


def _project_of(context: GraphQLContext, row: Sweep) -> ProjectNode:
    name = context.metadata_store.projects.name_of(row.project_id)
    if not context.has_accounts:
        return ProjectNode(row.project_id, name, context.default_entity(), None)
    resource = context.access.directory.project(row.project_id)
    names = context.access.accounts.entity_names([resource.entity.id])
    return ProjectNode(row.project_id, name, context.entity_named(names[resource.entity.id]), resource)


def _prior_runs(sent: Mapping[str, Any]) -> list[str]:
    """Return the ids of runs that are to belong to a new sweep.

    Raises:
        InvalidArgument: the filter of the client is another one than it sends for `prior_runs`.
    """
    text = sent.get("prior_runs_filters")
    try:
        filter_value = json_values.decode(text) if text else None
        names = [] if filter_value is None else [term["name"] for term in filter_value["$or"]]
    except (TypeError, ValueError, KeyError):
        names = [None]
    if len(names) > _MAX_PRIOR or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"invalid priorRunsFilters; expected the ids of at most {_MAX_PRIOR} runs")
    return names


def _run_id(context: GraphQLContext, project: ProjectNode, name: str) -> int:
    run = find_run(context, project, name)
    if run is None:
        raise InvalidArgument(f"there is no run {name[:100]!r} in the project {project.name!r}")
    return run.id


@SWEEP_CHANGES.field("Mutation", "createAgent")
def create_agent(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Register a process that starts runs of a sweep."""
    context = info.context
    name = input["sweep"]
    project = find_project(context, input.get("project_name") or DEFAULT_PROJECT, input.get("entity_name"))
    node = None if project is None else find_sweep(context, project, name)
    if node is None:
        raise HTTPException(404, f"there is no sweep {name[:100]!r} in this project")
    if node.project.resource is not None:
        what = f"project {node.project.name!r}"
        context.access.require(context.requester, Action.RUN_CREATE, node.project.resource, what)
    agent = context.metadata_store.sweeps.agents.add(node.row.id, input["host"], context.now_ms())
    return {"agent": {"id": node_id("Agent", agent.id)}}


@SWEEP_CHANGES.field("Mutation", "agentHeartbeat")
async def agent_heartbeat(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Return what an agent is to do next. One whose sweep was deleted is to end once its runs have."""
    context = info.context
    running = _running(input.get("run_state"))
    number = number_of("Agent", input["id"])
    agent = await run_in_threadpool(context.metadata_store.sweeps.agents.get, number)
    sweep = None if agent is None else await run_in_threadpool(_sweep_of, context, agent.sweep_id)
    if agent is None or sweep is None:
        commands = [] if running else _EXIT
    else:
        todo = AgentCommands(context.metadata_store, context.services.library)
        commands = await todo.after(agent, sweep, running, context.now_ms())
    return {"agent": {"id": input["id"]}, "commands": json.dumps(commands)}


def _sweep_of(context: GraphQLContext, number: int) -> Sweep | None:
    """Return the sweep of an agent; None if it was deleted, or the requester may not know of it.

    Raises:
        HTTPException: 401 or 403.
    """
    try:
        row = context.metadata_store.sweeps.sweeps.get(number)
    except UnknownSweep:
        return None
    project = _project_of(context, row)
    if project.resource is not None:
        try:
            context.access.require(context.requester, Action.RUN_CREATE, project.resource, "sweep")
        except HTTPException as error:
            if error.status_code == 404:
                return None
            raise
    return row


def _running(text: str | None) -> list[str]:
    """Return the ids of the runs that an agent has.

    Raises:
        InvalidArgument: it is not what agents report.
    """
    try:
        runs_by_name = json_values.decode(text) if text else {}
    except (TypeError, ValueError):
        runs_by_name = None
    if not isinstance(runs_by_name, dict) or len(runs_by_name) > MAX_REPORTED:
        raise InvalidArgument(f"invalid runState; expected a JSON object of at most {MAX_REPORTED} runs")
    return [name for name, runs in runs_by_name.items() if runs]
