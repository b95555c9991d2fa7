"""Begins, changes and resumes runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from runvitals.sdk.run_names import names_of
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import SCOPE_ACTIONS, ServiceAccount, User
from runvitals.server.doors.wandb.branches import branch_point, copy_media, copy_rows
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_ids import (
    NEWEST_SESSION_MS,
    RESUMED_LINES,
    SECTION,
    SESSION_MS,
    ClientRun,
    check_client_id,
    find_run,
)
from runvitals.server.doors.wandb.run_nodes import iso_time
from runvitals.server.doors.wandb.run_settings import (
    config_values,
    internal_values,
    machine_values,
    metric_definitions,
    parsed_json,
    removed_config,
    run_values,
    session_ms,
    was_offline,
)
from runvitals.server.doors.wandb.run_updates import update_run
from runvitals.server.doors.wandb.run_writers import MONITOR, RunWriters, host_name
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.ingest.envelope_decisions import ONLY_READS
from runvitals.server.runs.storage.run_places import RunPlace

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

RUN_WRITES: Final = Resolvers("run_writes")
ASYNC_CLIENT: Final = "x-wandb-client-id"
"""The header that names a process among those that log to the same run."""
_NO_RUN: Final = 0


class _Upsert(NamedTuple):
    """The run that a client begins or changes. `client`: None for one that has not begun."""

    run: ClientRun
    entity: EntityNode
    client: WandbClient | None


@RUN_WRITES.field("UpsertBucketPayload", "serverSettings")
async def server_settings(_: object, info: Info) -> dict[str, Any]:
    """Return the messages that the client is to show its user: none."""
    return {"serverMessages": []}


@RUN_WRITES.field("Mutation", "upsertBucket")
async def upsert_bucket(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Begin or change a run. What is null stays as it is."""
    context = info.context
    if input.get("id") and not input.get("name"):
        return await update_run(info, input)
    if not input.get("name"):
        raise InvalidArgument("name, the id of the run, is missing")
    try:
        check_client_id(input["name"])
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    name = context.request.headers.get(ASYNC_CLIENT, "")[:256]
    upsert = await run_in_threadpool(_read_upsert, context, input, name)
    now_ms = context.now_ms()
    begins = upsert.client is None or input.get("host") is not None
    client = upsert.client
    if client is None:
        client = WandbClient(_NO_RUN, name, host_name(input.get("host")), now_ms)
    elif begins:
        client = replace(client, host=host_name(input.get("host")), started_ms=now_ms, ended=False)
    entity = upsert.entity.name if context.has_accounts else None
    writers = RunWriters(upsert.run, entity, client)
    values = await run_in_threadpool(_sections, context, upsert, input)
    if begins:
        lines = _resumed_lines(context, upsert, values) if input.get("id") else 0
        values.setdefault(SECTION, {})[RESUMED_LINES] = lines
    if session := await run_in_threadpool(_session, context, upsert, values, begins):
        values.setdefault(SECTION, {}).update(session)
    branch = branch_point(values.get(SECTION, {}).get("config", {}))
    if upsert.client is None and branch is not None:
        client = replace(client, row_ms=await copy_rows(context, writers, input.get("entity_name"), branch))
    recorder = context.services.door_recorder
    info_record = (0, "info", {"t": now_ms, **values})
    await recorder.record(context.request.scope, [writers.records(MONITOR, [info_record])], 0)
    if upsert.client is None and branch is not None:
        await copy_media(
            context,
            writers,
            input.get("entity_name"),
            branch,
            await run_in_threadpool(_number, context, upsert),
        )
    return await run_in_threadpool(_finish, context, upsert, client if begins else None, input.get("sweep"))


def _resumed_lines(context: GraphQLContext, upsert: _Upsert, values: Mapping[str, Any]) -> int:
    """Return after how many lines of history a client that begins to send goes on.

    Raises:
        InvalidArgument: it was taken for `wandb sync` when it asked where the run had ended.
    """
    if upsert.run.stored_run is None or upsert.client is None:
        return 0
    clients = context.services.resuming_clients
    if not clients.was_synced(context.requester, upsert.run.stored_run.run_id):
        return upsert.client.history_lines
    if not was_offline(values.get(SECTION, {}).get("config", {})):
        clients.note_viewer(context.requester)
        raise InvalidArgument(
            "the last session of this run was recorded offline, and its steps would be counted from 0 again: "
            "resume it once more"
        )
    return 0


def _session(
    context: GraphQLContext, upsert: _Upsert, values: Mapping[str, Any], begins: bool
) -> dict[str, int | None]:
    """Return when the present session began, and when the newest one did. Reads the database."""
    began_ms = session_ms(values.get(SECTION, {}).get("config", {}))
    if began_ms is None:
        return {SESSION_MS: None} if begins else {}  # new clients say it later
    newest_ms = began_ms
    if upsert.run.stored_run is not None:
        run_id = upsert.run.stored_run.run_id
        stored = context.metadata_store.sections.read([run_id], (SECTION,))[run_id].shared
        newest_ms = max(began_ms, stored.get(SECTION, {}).get(NEWEST_SESSION_MS, began_ms))
    return {SESSION_MS: began_ms, NEWEST_SESSION_MS: newest_ms}


def _read_upsert(context: GraphQLContext, sent: dict[str, Any], client: str) -> _Upsert:
    name: str = sent.get("entity_name") or ""
    try:
        entity = context.entity_named(name)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        # As for an entity that the key may not know of.
        principal = context.requester.principal
        key = principal.key if isinstance(principal, (User, ServiceAccount)) else None
        missing = f"there is no entity {name[:100]!r} that this key may log to"
        may_send = key is None or Action.RUN_CREATE in SCOPE_ACTIONS[key.scope]
        raise HTTPException(403, missing if may_send else ONLY_READS) from None
    run = find_run(context.metadata_store, entity.number, sent.get("model_name"), sent["name"])
    stored_client = None
    if run.stored_run is not None:
        stored_client = context.metadata_store.wandb_clients.get(run.stored_run.run_id, client)
    return _Upsert(run, entity, stored_client)


def _sections(context: GraphQLContext, upsert: _Upsert, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the sections that a request changes."""
    config = parsed_json("config", sent.get("config"))
    internal = internal_values(config)
    about = run_values(sent)
    if upsert.run.stored_run is None:
        about.setdefault("name", next(names_of(upsert.run.uid)))
    own: dict[str, Any] = (
        {"id": upsert.run.name, "project": upsert.run.project} if upsert.run.stored_run is None else {}
    )
    if internal:
        own["config"] = internal
    if sent.get("sweep"):
        own["sweep"] = sent["sweep"]
    sections = {
        "run": about,
        "config": config_values(config),
        "summary": config_values(parsed_json("summaryMetrics", sent.get("summary_metrics"))),
        "metrics": metric_definitions(internal),
        "machine": machine_values(sent),
        SECTION: own,
        "removed": _removed_keys(context, upsert, sent, config),
    }
    return {name: values for name, values in sections.items() if values}


def _join(context: GraphQLContext, sweep: str, name: str, stored_run: RunPlace) -> None:
    """Add a run to a sweep of its project. A sweep that was deleted meanwhile does not end its runs."""
    sweeps = context.metadata_store.sweeps
    sweep_row = sweeps.sweeps.named(stored_run.project_id, sweep)
    if sweep_row is not None:
        sweeps.runs.begin(sweep_row.id, name, stored_run.run_id, context.now_ms())


def _removed_keys(
    context: GraphQLContext, upsert: _Upsert, sent: dict[str, Any], config: dict[str, Any]
) -> dict[str, list[str]]:
    """Return the keys that the client has removed. Of several that log to a run, each knows only its own."""
    stored_run = upsert.run.stored_run
    if stored_run is None or context.request.headers.get(ASYNC_CLIENT):
        return {}
    sections = context.metadata_store.sections.read([stored_run.run_id], ("config",))[stored_run.run_id]
    return removed_config(sent.get("config"), config_values(config), sections.shared.get("config", {}))


def _number(context: GraphQLContext, upsert: _Upsert) -> int:
    """Return the number of a recorded run; raise InvalidArgument if it was deleted for good before."""
    run = find_run(context.metadata_store, upsert.entity.number, upsert.run.project, upsert.run.name)
    if run.stored_run is None:
        raise InvalidArgument(f"the run {upsert.run.name!r} was deleted for good: choose another id")
    return run.stored_run.run_id


def _finish(
    context: GraphQLContext, upsert: _Upsert, client: WandbClient | None, sweep: str | None
) -> dict[str, Any]:
    """Return the response about a run that has been recorded.

    Args:
        client: its state to be kept; None: unchanged.
        sweep: the one that the run belongs to.
    """
    store = context.metadata_store
    run = find_run(store, upsert.entity.number, upsert.run.project, upsert.run.name)
    if run.stored_run is None:
        raise InvalidArgument(f"the run {upsert.run.name!r} was deleted for good: choose another id")
    number = run.stored_run.run_id
    if client is not None:
        client = replace(client, run_id=number)
        store.wandb_clients.put(client)
    if sweep is not None:
        _join(context, sweep, upsert.run.name, run.stored_run)
    row = store.runs.get([number], context.now_ms())[number]
    project = {
        "id": node_id("Project", run.stored_run.project_id),
        "name": upsert.run.project,
        "entity": upsert.entity,
        "entityName": upsert.entity.name,
    }
    bucket = {
        "id": node_id("Run", number),
        "name": upsert.run.name,
        "displayName": row.name,
        "project": project,
        "createdAt": iso_time(row.started_ms),
        "sweepName": sweep,
        "historyLineCount": 0,  # a client that resumes the run has asked for it before
    }
    return {"bucket": bucket, "inserted": upsert.run.stored_run is None}
