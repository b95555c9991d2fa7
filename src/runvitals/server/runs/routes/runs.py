"""`/runs`: list and search runs, read one, stop, delete, restore and edit it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import HTTPException, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.run import Run
from runvitals.model.run_json import run_as_dict
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.server.access.permission import needs, recording, route_check
from runvitals.server.charts import goal_lines
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.responses import (
    EDIT_ERRORS,
    INVALID_PARAMETER,
    UNKNOWN_RUN,
    json_bytes,
    json_response,
)
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.list_parameters import MAX_SPARKLINE_RUNS, RequestedList, TheList
from runvitals.server.runs.routes.parameters import (
    CheckedRunId,
    RunNumber,
    TheEditableLibrary,
    TheFilter,
    TheLibrary,
    TheRun,
    TheStoppingLibrary,
)
from runvitals.server.runs.run_lists import RunsPage, ShownColumns
from runvitals.server.services import services_of

DEFAULT_LAST = ("cpu", "memory_percent", "gpu.*.gpu", "gpu.*.memoryAllocated")
"""Keys whose newest values are listed with a run: the columns of the page's table."""
LOCAL_ACTIONS = ("run:update", "run:move", "run:delete")
"""What may be done with a run of this machine on its own page."""
MadeBefore = Annotated[
    int | None,
    Query(
        ge=0,
        le=2**53,
        description="When it was done, ms UTC, if that was before: of each fact the latest change stays.",
    ),
]
_NOTE_CHARACTERS = 200
_ERRORS_OF_CHANGES = {**INVALID_PARAMETER, **UNKNOWN_RUN, **EDIT_ERRORS}

_ROW_FIELDS = tuple(name for name in models.RunRowSchema.model_fields if name != "may")

router = Router()


@router.get(
    "/runs", needs("filtered run:read"), response_model=models.RunPageSchema, responses=INVALID_PARAMETER
)
async def list_runs(
    request: Request,
    library: TheLibrary,
    run_filter: TheFilter,
    requested: TheList,
    last: Annotated[
        list[str] | None, Query(description="Keys or globs whose newest values are returned.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the previous page.")] = None,
    skip: Annotated[int, Query(ge=0, le=1_000_000, description="Leave out this many runs first.")] = 0,
    goal: Annotated[
        bool,
        Query(description="Also return the goal metric and its course, of the first 20 runs of the page."),
    ] = False,
) -> Response:
    """Runs, newest first. Pages are stable: a run that starts meanwhile moves no run to another page."""
    cursors = services_of(request).cursors
    _check_limit(requested, limit)
    with answering(422):
        if after is not None and cursors is not None:
            after = await run_in_threadpool(cursors.open, request, after)
        keys = KeyFilter(last or DEFAULT_LAST)
        page = await library.page(run_filter, requested.sort, limit, after, keys, requested.shown, skip)
        names = goal_lines.names_of(page.runs) if goal else ()
        lines: goal_lines.Lines = {}
        if names:
            few, goal_columns = min(limit, goal_lines.MAX_RUNS), ShownColumns(sparklines=names)
            first = await library.page(run_filter, requested.sort, few, after, _nothing, goal_columns, skip)
            lines = goal_lines.lines_of(first)

    def encode() -> bytes:
        rows = _rows(page, requested)
        _add_goals(rows, page.runs, lines)
        following = page.next
        may = _actions(request, page.runs, run_filter.deleted)
        rows = [{**row, "may": actions} for row, actions in zip(rows, may, strict=True)]
        if following is not None and cursors is not None:
            following = cursors.bind(request, following)
        body = {"runs": rows, "total": page.total, "next": following, "pending": page.pending}
        return json_bytes(body)

    return await json_response(request, await run_in_threadpool(encode))


def _check_limit(requested: RequestedList, limit: int) -> None:
    if requested.sparklines and limit > MAX_SPARKLINE_RUNS:
        raise InvalidFields(
            {"sparklines": f"expected a limit of at most {MAX_SPARKLINE_RUNS} with sparklines"}
        )


def _nothing(key: str) -> bool:
    return False


def _add_goals(rows: list[dict[str, Any]], runs: Sequence[Run], lines: goal_lines.Lines) -> None:
    for row, run in zip(rows, runs, strict=True):
        metric = goal_lines.goal_of(run)
        line = lines.get((run.entity, run.id), {}).get(metric.name) if metric else None
        if metric and line:
            row["goal"] = {**asdict(metric), "line": line}


def _actions(request: Request, runs: Sequence[Run], deleted: bool = False) -> Sequence[Sequence[str]]:
    """Return what the requester may do with each of some runs, all in the trash or all not."""
    access = route_check(request)
    return [LOCAL_ACTIONS] * len(runs) if access is None else access.may_of_runs(request, runs, deleted)


def _rows(page: RunsPage, requested: RequestedList) -> list[dict[str, Any]]:
    runs = [run_as_dict(run) for run in page.runs]
    rows: list[dict[str, Any]] = [{name: run[name] for name in _ROW_FIELDS} for run in runs]
    for row, run in zip(rows, runs, strict=True):
        row["notes"] = run["notes"].partition("\n")[0][:_NOTE_CHARACTERS]
    if requested.fields:
        for row, values in zip(rows, page.columns, strict=True):
            row["columns"] = {name: values.get(field) for name, field in requested.fields.items()}
    if requested.sparklines:
        for row, lines in zip(rows, page.sparklines, strict=True):
            row["sparklines"] = {key: lines.get(key, []) for key in requested.sparklines}
    return rows


@router.get("/fields", needs("filtered run:read"), response_model=list[str], responses=INVALID_PARAMETER)
async def run_fields(library: TheLibrary, run_filter: TheFilter) -> Any:
    """The fields of the newest 1,000 runs that match a filter: what `sort` and `where` accept."""
    return await library.fields(run_filter)


@router.get(
    "/runs/{run}",
    needs("run:read"),
    response_model=models.RunDetail,
    responses={**INVALID_PARAMETER, **UNKNOWN_RUN},
)
async def one_run(request: Request, run: TheRun, library: TheLibrary) -> Response:
    """Everything known about a run except its series."""

    def read(view: RunView) -> bytes:
        details = view.run(library.clock())
        return json_bytes({**run_as_dict(details), "may": _actions(request, [details])[0]})

    return await json_response(request, await run.use(read, quick=True))


@router.post("/runs/{run}/stop", needs("run:stop"), response_model=models.Done, responses=_ERRORS_OF_CHANGES)
async def stop(request: Request, library: TheStoppingLibrary, run: CheckedRunId, number: RunNumber) -> Any:
    """Request the end of a run: its training gets a KeyboardInterrupt, as if a user had pressed Ctrl-C."""
    with answering(409):
        await library.stop(run, number, recording(request, "run.stop"))
    return {"run": run, "done": "stop"}


@router.delete("/runs/{run}", needs("run:delete"), response_model=models.Done, responses=_ERRORS_OF_CHANGES)
async def delete(
    request: Request,
    library: TheEditableLibrary,
    run: CheckedRunId,
    number: RunNumber,
    at_ms: MadeBefore = None,
) -> Any:
    """Move a run to the trash. `POST /runs/{run}/restore` restores it until it is removed for good."""
    await library.delete(run, number, recording(request, "run.delete"), at_ms)
    return {"run": run, "done": "delete"}


@router.post(
    "/runs/{run}/restore", needs("run:delete"), response_model=models.Done, responses=_ERRORS_OF_CHANGES
)
async def restore(
    request: Request,
    library: TheEditableLibrary,
    run: CheckedRunId,
    number: RunNumber,
    at_ms: MadeBefore = None,
) -> Any:
    """Restore a run from the trash."""
    await library.restore(run, number, recording(request, "run.restore"), at_ms)
    return {"run": run, "done": "restore"}


@router.patch("/runs/{run}", needs("run:update"), response_model=models.Done, responses=_ERRORS_OF_CHANGES)
async def edit(
    request: Request,
    library: TheEditableLibrary,
    run: CheckedRunId,
    number: RunNumber,
    changes: models.RunChanges,
    at_ms: MadeBefore = None,
) -> Any:
    """Set a run's name, notes, tags, group, job type, project or author.

    Fields that are left out do not change.
    """
    access = route_check(request)
    if access is not None and "project" in changes.model_fields_set:
        await run_in_threadpool(access.check_move, request, changes.project)
    values = changes.model_dump(exclude_unset=True, exclude={"author"})
    writes: list[Callable[[], None]] = []
    if "author" in changes.model_fields_set:
        recorded = services_of(request).changes
        if recorded is None:
            raise HTTPException(422, "author: this server has no accounts")
        writes.append(await run_in_threadpool(recorded.author_change, request, changes.author))
    if fields := sorted(values.keys() - {"project"}):
        writes.append(recording(request, "run.update", fields=fields))
    if "project" in values:
        writes.append(recording(request, "run.move", project=values["project"]))
    with answering(422):
        await library.edit(run, values, number, partial(_do_all, writes), at_ms)
    return {"run": run, "done": "edit"}


def _do_all(writes: Iterable[Callable[[], None]]) -> None:
    for write in writes:
        write()
