"""`project`, its runs, and what can be done with a run by `wandb.Api()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool

from runvitals.model.filter import Filter, Term
from runvitals.model.mongo_filter import parse_filters
from runvitals.model.mongo_order import parse_order
from runvitals.server.access.actions import Action
from runvitals.server.doors.wandb.context import GraphQLContext, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import (
    OUR_STATES,
    ProjectNode,
    RunNode,
    find_project,
    find_run,
    run_nodes,
    run_to_change,
    selected_fields,
)

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

RUN_READS: Final = Resolvers("run_reads")
_INSIDE: Final = "inside"
"""The cursor of runs after which no page begins: clients expect a text."""
MAX_PAGE: Final = 1000


@RUN_READS.field("Query", "project")
def project(
    _: None, info: Info, name: str | None = None, entity_name: str | None = None
) -> ProjectNode | None:
    """Return a project by its address; null if there is none that the requester may read."""
    return find_project(info.context, name, entity_name)


@RUN_READS.field("Project", "readOnly")
def project_read_only(node: ProjectNode, info: Info) -> bool:
    """Return whether the requester may not log to the project."""
    context = info.context
    return node.resource is not None and not context.access.may(
        context.requester, Action.RUN_CREATE, node.resource
    )


@RUN_READS.field("Project", "run")
def one_run(node: ProjectNode, info: Info, name: str, desc: str | None = None) -> RunNode | None:
    """Return a run by its run id."""
    context = info.context
    row = find_run(context, node, name)
    if row is None:
        return None
    context.metadata_store.read_days.note_run(row.id, context.now_ms())
    return run_nodes(context, node, [row], selected_fields(info))[0]


@RUN_READS.field("Project", "runCount")
def run_count(node: ProjectNode, info: Info, filters: str | None = None) -> int:
    """Return how many runs match a filter."""
    context = info.context
    return context.metadata_store.runs.count(_read_filter(context, node, filters), context.now_ms())


@RUN_READS.field("Project", "runs")
def runs(
    node: ProjectNode,
    info: Info,
    filters: str | None = None,
    order: str | None = None,
    first: int | None = None,
    after: str | None = None,
) -> dict[str, Any]:
    """Return a page of the runs that match a filter. A page begins after the last one of another only."""
    return page_of_runs(info, node, _read_filter(info.context, node, filters), order, first, after)


def page_of_runs(
    info: Info, node: ProjectNode, filter_: Filter, order: str | None, first: int | None, after: str | None
) -> dict[str, Any]:
    """Return a `RunConnection` of the runs of a project that match a filter."""
    context, bound = info.context, info.context.services.cursors
    limit = max(1, min(MAX_PAGE, 50 if first is None else first))
    try:
        sort = parse_order(order)
        opened = bound.open(context.request, after) if after else None
        page = context.metadata_store.runs.page(filter_, sort, context.now_ms(), limit, opened)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    end = None if page.next is None else bound.bind(context.request, page.next)
    nodes = run_nodes(context, node, page.runs, selected_fields(info))
    cursors = [*[_INSIDE] * (len(nodes) - 1), end or _INSIDE]
    return {
        "edges": [
            {"node": run_node, "cursor": cursor} for run_node, cursor in zip(nodes, cursors, strict=False)
        ],
        "pageInfo": {
            "endCursor": end,
            "hasNextPage": end is not None,
            "hasPreviousPage": after is not None,
            "startCursor": None,
        },
    }


def of_project(context: GraphQLContext, node: ProjectNode, *terms: Term) -> Filter:
    """Return the runs of a project that the requester may read and for which terms hold."""
    readable = context.access.readable_runs(context.request)
    entity = None if node.resource is None else node.entity.name
    return Filter(project=node.name, entity=entity, readable=readable, terms=terms)


def _read_filter(context: GraphQLContext, node: ProjectNode, filters: str | None) -> Filter:
    if filters is not None and not isinstance(filters, str):
        raise InvalidArgument("invalid filters: expected JSON in a text")
    try:
        terms = parse_filters(filters, OUR_STATES)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    return of_project(context, node, *terms)


@RUN_READS.field("Mutation", "deleteRun")
async def delete_run(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Move a run to the trash. For one that is there this does nothing: clients delete twice."""
    context = info.context
    number = number_of("Run", input["id"])
    row = await run_in_threadpool(run_to_change, context, number, Action.RUN_DELETE, also_deleted=True)
    library, changes = context.services.library, context.services.changes
    if row.deleted_ms is None:
        await library.delete(
            row.uid,
            row.id,
            lambda: changes.record_of_run(context.requester, row.id, "run.delete"),
        )
    return {"success": True, "clientMutationId": input.get("client_mutation_id")}


@RUN_READS.field("Mutation", "stopRun")
async def stop_run(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Request the end of a run. For a run that has ended this does nothing."""
    context = info.context
    number = number_of("Run", input["id"])
    row = await run_in_threadpool(run_to_change, context, number, Action.RUN_STOP)
    library, changes = context.services.library, context.services.changes
    if row.state == "running":
        await library.stop(
            row.uid,
            row.id,
            lambda: changes.record_of_run(context.requester, row.id, "run.stop"),
        )
    return {"success": True, "clientMutationId": input.get("client_mutation_id")}


@RUN_READS.field("Mutation", "updateRunState")
async def update_run_state(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Record that a run has failed which runs or is lost, say because its machine was taken away."""
    context = info.context
    number = number_of("Run", input["id"])
    if input["state"] != "failed":
        raise InvalidArgument(f"invalid state {input['state'][:100]!r}; expected 'failed'")
    row = await run_in_threadpool(run_to_change, context, number, Action.RUN_UPDATE)
    library, changes = context.services.library, context.services.changes
    try:
        await library.fail(
            row.uid,
            row.id,
            lambda: changes.record_of_run(context.requester, row.id, "run.update", {"fields": ["state"]}),
        )
    except ValueError as error:
        raise InvalidArgument(f"invalid state transition: {error}") from None
    return {"success": True, "clientMutationId": input.get("client_mutation_id")}
