"""Tells clients where a run that they resume has ended, and takes their alerts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from runvitals.model.errors import UnknownRun
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Operator
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.file_stream import writers_of
from runvitals.server.doors.wandb.history_rows import RUNTIME, STEP, TIMESTAMP
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_ids import DEFAULT_PROJECT, SECTION, find_run
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project
from runvitals.server.doors.wandb.run_settings import INTERNAL, was_offline
from runvitals.server.doors.wandb.run_writers import MONITOR, event_number
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.doors.wandb.summaries import summary_of
from runvitals.server.service_parameters import door_recorder

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

RESUME: Final = Resolvers("resume")
_LEVELS: Final = {"INFO": "info", "WARN": "warning", "ERROR": "error"}
_MAX_TEXT: Final = 10_000


class _OnlyLogged(NamedTuple):
    """A project that the requester may log to but not read: only its address is known to them."""

    id: str
    name: str
    entity: EntityNode
    entity_name: str


@RESUME.field("Query", "model")
def model(
    _: None, info: Info, name: str | None = None, entity_name: str | None = None
) -> ProjectNode | _OnlyLogged | None:
    """Return the project of a run that may exist; null if there is none that the requester may know of."""
    context = info.context
    try:
        entity = context.entity_named(entity_name)
    except HTTPException:
        return None
    project = name or DEFAULT_PROJECT
    readable = find_project(context, project, entity.name)
    if readable is not None:
        return readable
    number = dict(context.metadata_store.projects.named(project)).get(entity.number)
    if number is None or not _may_know(context, number):
        return None
    return _OnlyLogged(node_id("Project", number), project, entity, entity.name)


@RESUME.field("Project", "bucket")
def bucket(
    project: ProjectNode | _OnlyLogged, info: Info, name: str | None = None, missing_ok: bool | None = None
) -> dict[str, Any] | None:
    """Return where a process resumes a run; null if the requester may not log to such a run."""
    context = info.context
    entity = project.entity
    run = find_run(context.metadata_store, entity.number, project.name, name or "")
    if run.stored_run is None or run.stored_run.deleted or not _may_log(context, run.uid, entity):
        return None
    run_id = run.stored_run.run_id
    store = context.metadata_store
    row = store.runs.get([run_id], context.now_ms())[run_id]
    client = store.wandb_clients.get(run_id, "") or WandbClient(run_id, "", "", 0)
    sections = store.sections.read([run_id])[run_id]
    own = sections.shared.get(SECTION, {})
    internal = own.get("config", {})
    config = {key: {"value": value} for key, value in sections.shared.get("config", {}).items()}
    if internal:
        config[INTERNAL] = {"value": internal}
    summary = summary_of(sections)
    lines = client.history_lines
    if was_offline(internal) and not context.follows_viewer:
        # A run whose last session was recorded offline most likely has another, whose rows keep their steps.
        context.services.resuming_clients.note_synced(context.requester, run_id)
        summary, lines = {key: value for key, value in summary.items() if key != STEP}, 0
    tail = {key: value for key, value in summary.items() if _is_own(key, value)}
    if lines:
        tail |= _last_step(context, run_id, tail.get(STEP, 0))
    about = sections.shared.get("run", {})
    return {
        "id": node_id("Run", run_id),
        "name": run.name,
        "displayName": row.name,
        "project": project,
        "summaryMetrics": json.dumps(summary),
        "config": json.dumps(config),
        "historyLineCount": lines,
        "eventsLineCount": client.event_lines,
        "logLineCount": client.console_lines,
        "historyTail": json.dumps([json.dumps(tail)]),
        "eventsTail": json.dumps([json.dumps(tail)]),
        "wandbConfig": json.dumps({"t": internal.get("t", 1)}),
        "tags": about.get("tags", []),
        "notes": about.get("notes", ""),
    }


def _last_step(context: GraphQLContext, run_id: int, step: float) -> dict[str, float]:
    """Return the last step of a run as in a row. `step`: that of its summary.

    A client that was killed may have sent rows that its last summary does not know.
    """
    extent = context.services.library.logged_extents([run_id]).get(run_id)
    if extent is None or extent.last_step is None:
        return {}
    return {STEP: max(int(extent.last_step), step)}


def _is_own(key: str, value: Any) -> bool:
    return key in (STEP, RUNTIME, TIMESTAMP) and isinstance(value, (int, float))


def _may_know(context: GraphQLContext, project_id: int) -> bool:
    """Return whether the requester may read a project or log to it."""
    if isinstance(context.requester.principal, Operator):
        return True
    project = context.access.directory.project(project_id)
    actions = (Action.PROJECT_READ, Action.RUN_CREATE)
    return any(context.access.may(context.requester, action, project) for action in actions)


def _may_log(context: GraphQLContext, uid: str, entity: EntityNode) -> bool:
    principal = context.requester.principal
    if isinstance(principal, Operator):
        return True
    try:
        context.access.directory.find_sent_run(principal, uid, entity.name)
    except UnknownRun:
        return False
    return True


@RESUME.field("Run", "stopped")
def stopped(run: Any, info: Info) -> bool:
    """Return whether a user has asked the present process to end: clients before 0.28 ask for it so."""
    store, run_id = info.context.metadata_store, number_of("Run", run.id)
    client = store.wandb_clients.get(run_id, "")
    requested_ms = store.runs.stops_requested([run_id]).get(run_id)
    return requested_ms is not None and (client is None or requested_ms >= client.started_ms)


@RESUME.field("Mutation", "notifyScriptableRunAlert")
async def alert(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Record `run.alert()`."""
    context = info.context
    writers = await run_in_threadpool(
        writers_of, context, input.get("entity_name"), input.get("project_name"), input["run_name"], ""
    )
    now_ms = context.now_ms()
    event = {
        "t": now_ms,
        "name": "alert",
        "level": _LEVELS.get(input.get("severity") or "INFO", "info"),
        "title": input["title"][:_MAX_TEXT],
        "text": input["text"][:_MAX_TEXT],
    }
    envelope = writers.records(MONITOR, [(event_number(now_ms), "event", event)])
    await door_recorder(context.request).record(context.request.scope, [envelope], 0)
    return {"success": True}
