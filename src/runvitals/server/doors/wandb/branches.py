"""Runs that go on from a step of another run (`fork_from`), or go back to one (`resume_from`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from fastapi import HTTPException
from starlette.concurrency import run_in_threadpool

from runvitals.server.charts.series import LoggedSelection
from runvitals.server.doors.wandb.context import GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.file_stream import writers_of
from runvitals.server.doors.wandb.history_rows import RUNTIME, STEP, TIMESTAMP, HistoryRows, Row
from runvitals.server.doors.wandb.logged_rows import HistoryLine, history_envelopes
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.row_removal import remove_rows, rows_to_remove
from runvitals.server.doors.wandb.run_ids import DEFAULT_PROJECT
from runvitals.server.doors.wandb.run_nodes import find_project, find_run, iso_time
from runvitals.server.doors.wandb.run_writers import MONITOR, TRAIN, RunWriters
from runvitals.server.library.run_library import RunView, TooMuch
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.service_parameters import door_recorder

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

BRANCHES: Final = Resolvers("branches")
_FORK: Final = "fork"
MAX_COPIED: Final = 1_000_000
"""Rows of the run that is forked."""
_ROWS_PER_REQUEST: Final = 10_000


class BranchPoint(NamedTuple):
    """The run that another one goes on from, by the client's id, and the last step that they share."""

    run: str
    step: float


def branch_point(internal: Mapping[str, Any]) -> BranchPoint | None:
    """Return the run and step that a run goes on from, as its configuration says.

    Raises:
        InvalidArgument: it is no run and step.
    """
    sent = internal.get("branch_point")
    if not isinstance(sent, dict):
        return None
    run, step = sent.get("run_id"), sent.get("step")
    if not isinstance(run, str) or isinstance(step, bool) or not isinstance(step, (int, float)):
        raise InvalidArgument("invalid branch_point; expected a run_id and a step")
    return BranchPoint(run, float(step))


async def copy_rows(
    context: GraphQLContext, writers: RunWriters, entity: str | None, branch: BranchPoint
) -> int:
    """Copy the rows of another run of the project up to a step; returns the time of the last one.

    A client repeats this until it gets a response, so what is stored already is not stored again.

    Raises:
        HTTPException: 404 if there is no such run that the requester may read.
        InvalidArgument: it has too many rows.
    """
    rows = await _rows(context, writers.run.project, entity, branch)
    recorder, seq, row_ms = door_recorder(context.request), 0, 0
    for first in range(0, len(rows), _ROWS_PER_REQUEST):
        part = np.arange(first, min(first + _ROWS_PER_REQUEST, len(rows)))
        try:
            lines = _lines(await run_in_threadpool(rows.rows, part), first, row_ms)
        except TooMuch as error:
            raise InvalidArgument(f"the run {branch.run[:100]!r} cannot be forked: {error}") from None
        row_ms = lines[-1].time_ms
        envelopes = history_envelopes(lines, writers)
        for envelope in envelopes:
            envelope.writer, envelope.seq, seq = _writer_name(writers), seq, seq + 1
        await recorder.record(context.request.scope, envelopes, 0)
    return row_ms


def _lines(rows: Sequence[Row], first: int, row_ms: int) -> list[HistoryLine]:
    """Return rows as lines of a client.

    Args:
        first: the number of the first one.
        row_ms: the time of the one before.
    """
    lines = []
    for number, row in enumerate(rows, first):
        sent_ms = round(row.pop(TIMESTAMP) * 1000)
        row_ms = max(sent_ms, row_ms + 1)
        step = float(row.pop(STEP))
        row.pop(RUNTIME)
        lines.append(HistoryLine(number, row_ms, sent_ms, step, row))
    return lines


async def copy_media(
    context: GraphQLContext, writers: RunWriters, entity: str | None, branch: BranchPoint, run_id: int
) -> None:
    """Give a run that was recorded the media that another run of the project has logged up to a step.

    What it has already is not added again.

    Raises:
        HTTPException: 404 if there is no such run that the requester may read.
    """
    source = await _branch(context, writers.run.project, entity, branch)
    store, monitor = context.metadata_store, writers.name(MONITOR)

    def copy() -> None:
        stored = store.writers.of_runs([run_id])[run_id]
        writer_id = next(writer.id for writer in stored if writer.name == monitor)
        store.media.copy_until(source.id, run_id, writer_id, branch.step)

    await run_in_threadpool(copy)


def _writer_name(writers: RunWriters) -> str:
    """Return the writer of copied rows: always the same, unlike those of processes."""
    return f"{writers.name(TRAIN).rpartition('.')[0]}.{_FORK}"


async def _rows(
    context: GraphQLContext, project: str, entity: str | None, branch: BranchPoint
) -> HistoryRows:
    row = await _branch(context, project, entity, branch)

    def read(view: RunView) -> HistoryRows:
        rows = HistoryRows(LoggedSelection(last_step=branch.step).columns(view), row.started_ms)
        if len(rows) > MAX_COPIED:
            raise TooMuch(f"it has {len(rows):,} rows up to step {branch.step:g}: at most {MAX_COPIED:,}")
        return rows

    library = context.services.library
    opened = await library.open(row.uid, row.id)
    try:
        return await opened.use(read)
    except TooMuch as error:
        raise InvalidArgument(f"the run {branch.run[:100]!r} cannot be forked: {error}") from None


async def _branch(context: GraphQLContext, project: str, entity: str | None, branch: BranchPoint) -> RunRow:
    """Return the run that another one goes on from."""
    node = await run_in_threadpool(find_project, context, project, entity)
    row = None if node is None else await run_in_threadpool(find_run, context, node, branch.run)
    if row is None:
        raise HTTPException(404, f"there is no run {branch.run[:100]!r} in {project!r} that can be forked")
    return row


@BRANCHES.field("Mutation", "rewindRun")
async def rewind_run(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Remove what a run has logged after a step."""
    context = info.context
    if input["metric_name"] != STEP:
        raise InvalidArgument(f"cannot go back by {input['metric_name'][:60]!r}; expected {STEP!r}")
    step = float(input["metric_value"])
    if not math.isfinite(step):
        raise InvalidArgument("invalid metricValue; expected the last step that is to stay")
    writers = await run_in_threadpool(
        writers_of, context, input.get("entity_name"), input.get("project_name"), input["run_name"], ""
    )
    try:
        removed = await run_in_threadpool(rows_to_remove, context, writers.client.run_id, step)
    except TooMuch as error:
        raise InvalidArgument(f"the run {error}: fork it instead") from None
    await remove_rows(context, writers, removed, step, f"what was logged after step {step:g} was removed")
    return {"rewoundRun": await run_in_threadpool(_node, context, writers, input)}


def _node(context: GraphQLContext, writers: RunWriters, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run as the client goes on with it.

    New lines get the numbers after those that it has sent.
    """
    store = context.metadata_store
    run_id = writers.client.run_id
    row = store.runs.get([run_id], context.now_ms())[run_id]
    shared = store.sections.read([run_id], ("config", "run")).get(run_id)
    config = {} if shared is None else shared.shared.get("config", {})
    entity = context.entity_named(sent.get("entity_name"))
    project = sent.get("project_name") or DEFAULT_PROJECT
    return {
        "id": node_id("Run", run_id),
        "name": writers.run.name,
        "displayName": row.name,
        "createdAt": iso_time(row.started_ms),
        "config": json.dumps({key: {"value": value} for key, value in config.items()}),
        "historyLineCount": writers.client.history_lines,
        "project": {
            "id": node_id("Project", row.project_id),
            "name": project,
            "entity": entity,
            "entityName": entity.name,
        },
    }
