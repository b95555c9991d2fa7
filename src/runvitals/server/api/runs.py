"""The API: `/api/v1`. Everything a page shows comes from here, so everything can be scripted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

import runvitals
from runvitals.metrics import SUBJECTS
from runvitals.model.run_json import run_as_dict
from runvitals.query.key_filter import KeyFilter
from runvitals.server.api import changes, fleet, models, series
from runvitals.server.api.parameters import TheFilter, TheLibrary, TheRun
from runvitals.server.api.responses import answer, json_bytes
from runvitals.server.library import RunView
from runvitals.store.metadata.run_listing import RunSort

SHOWN_IN_TABLES = ("cpu", "memory_percent", "gpu.*.gpu", "gpu.*.memoryAllocated")
_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": models.ErrorAnswer, "description": "There is no such run."},
    422: {
        "model": models.ErrorAnswer,
        "description": "A parameter is wrong; the text says which, and what is allowed.",
    },
}
router = APIRouter(prefix="/api/v1", responses=_ERRORS)


@router.get("/about", response_model=models.About)
async def about(runs: TheLibrary) -> Any:
    """What this server is, and what it can do."""
    shared = runs.kind == "server"
    capabilities = ["search", "statistics", "latest", "aggregate", *(changes.CAPABILITIES if shared else ())]
    return {"version": runvitals.__version__, "kind": runs.kind, "capabilities": capabilities}


@router.get("/projects", response_model=list[models.Project])
async def projects(runs: TheLibrary) -> Any:
    """The projects that have runs, the one with the newest run first."""
    return await runs.projects()


@router.get("/runs", response_model=models.RunPage)
async def list_runs(
    request: Request,
    runs: TheLibrary,
    wanted: TheFilter,
    last: Annotated[list[str] | None, Query(description="Keys or globs whose newest values to show.")] = None,
    sort: Annotated[
        str,
        Query(
            description="`started_ms`, `name`, `id`, `group`, `job_type`, `state`, `project`, `last_ms`, "
            "`duration_ms`, or a field: `config.…`, `summary.…`. Runs without a value come last.",
            max_length=300,
        ),
    ] = "started_ms",
    descending: Annotated[bool, Query(description="The highest, or newest, first.")] = True,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """Runs, newest first. Pages are stable: a run that starts meanwhile moves none to another page."""
    try:
        order = RunSort(sort, descending)
        page = await runs.page(wanted, order, limit, after, KeyFilter(last or SHOWN_IN_TABLES))
    except ValueError as error:
        raise HTTPException(422, str(error)) from None

    def text() -> bytes:
        shown = [run_as_dict(run) for run in page.runs]
        rows = [{name: one[name] for name in models.RunRow.model_fields} for one in shown]
        return json_bytes({"runs": rows, "total": page.total, "next": page.next})

    return await answer(request, await run_in_threadpool(text))


@router.get("/fields", response_model=list[str])
async def run_fields(runs: TheLibrary, wanted: TheFilter) -> Any:
    """The fields that the runs of a filter have, the newest 1,000: what `sort` and `where` may name."""
    return await runs.fields(wanted)


@router.get("/runs/{run}", response_model=models.RunDetail)
async def one_run(request: Request, run: TheRun, runs: TheLibrary) -> Response:
    """Everything known of a run but its series."""
    return await answer(
        request, await run.use(lambda view: json_bytes(run_as_dict(view.run(runs.clock()))), quick=True)
    )


@router.get("/runs/{run}/events", response_model=list[models.Event])
async def run_events(
    request: Request,
    run: TheRun,
    runs: TheLibrary,
    skip: Annotated[
        int, Query(description="Leave out so many of the newest: for older ones.", ge=0, le=2**53)
    ] = 0,
    limit: Annotated[int, Query(description="The newest so many.", ge=1, le=10_000)] = 10_000,
) -> Response:
    """What happened: alerts, failures, gaps, lost records, in order of time."""

    def read(view: RunView) -> bytes:
        return json_bytes(view.events(runs.clock(), skip, limit))

    return await answer(request, await run.use(read, quick=True))


@router.get("/runs/{run}/console", response_model=models.ConsoleAnswer)
async def run_console(request: Request, run: TheRun) -> Response:
    """The newest output of the program."""

    def read(view: RunView) -> bytes:
        cut, pieces = view.printed()
        return json_bytes({"cut": cut, "pieces": [piece._asdict() for piece in pieces]})

    return await answer(request, await run.use(read, quick=True))


@router.get("/catalogue", response_model=list[models.CatalogueRow])
async def catalogue() -> Any:
    """Every metric there is: key, unit, kind, chart, and what it means."""
    return [
        {
            **{name: getattr(metric, name) for name in models.CatalogueRow.model_fields if name != "subject"},
            "subject": subject,
        }
        for subject, metrics in SUBJECTS.items()
        for metric in metrics
    ]


router.include_router(series.router)
router.include_router(fleet.router)
router.include_router(changes.router)
