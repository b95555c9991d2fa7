"""The API: `/api/v1`. Everything a page shows comes from here, so everything can be scripted."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from runvitals.catalog import SUBJECTS
from runvitals.journal.paths import check_run_id
from runvitals.query.keys import KeyFilter
from runvitals.query.model import Run, State
from runvitals.query.opened import UnknownRun
from runvitals.query.plain import run_as_dict
from runvitals.query.reader import RunReader
from runvitals.server import live, models, series
from runvitals.server.library import Library, OpenedRun

SHOWN_IN_TABLES = ("cpu", "memory_percent", "gpu.*.gpu", "gpu.*.memoryAllocated")
_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": models.ErrorAnswer, "description": "There is no such run."},
    422: {
        "model": models.ErrorAnswer,
        "description": "A parameter is wrong; the text says which, and what is allowed.",
    },
}
router = APIRouter(prefix="/api/v1", responses=_ERRORS)


def library(request: Request) -> Library:
    found: Library = request.app.state.library
    return found


RunId = Annotated[str, Path(description="The run's whole id.", max_length=128)]
Keys = Annotated[
    list[str],
    Query(description="Keys or globs, as often as needed: `cpu`, `gpu.*`. All without one.", max_length=1000),
]
Millis = Annotated[int | None, Query(ge=-(2**53), le=2**53, description="ms UTC")]
MaxPoints = Annotated[int, Query(ge=2, le=10_000, description="For each series; more are put into buckets.")]
TheLibrary = Annotated[Library, Depends(library)]


async def opened(run: RunId, runs: TheLibrary) -> OpenedRun:
    """The run of the path.

    Raises:
        HTTPException: 404 with what there is instead.
    """
    try:
        check_run_id(run)
        return await runs.open(run)
    except (UnknownRun, ValueError) as error:
        raise HTTPException(404, str(error)) from None


TheRun = Annotated[OpenedRun, Depends(opened)]


@router.get("/projects", response_model=list[models.Project])
async def projects(runs: TheLibrary) -> Any:
    """The projects that have runs, the one with the newest run first."""
    found: dict[str, dict[str, Any]] = {}
    for run in await runs.runs():
        project = found.setdefault(
            run.project, {"name": run.project, "runs": 0, "running": 0, "newest_ms": run.started_ms}
        )
        project["runs"] += 1
        project["running"] += run.state == "running"
    return list(found.values())


@router.get("/runs", response_model=models.RunPage)
async def list_runs(
    runs: TheLibrary,
    project: Annotated[str | None, Query(description="Only of this project.")] = None,
    state: Annotated[list[State] | None, Query(description="Only in these states.")] = None,
    last: Annotated[list[str] | None, Query(description="Keys or globs whose newest values to show.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Any:
    """Runs, newest first. Pages are stable: a run that starts meanwhile moves none to another page."""
    found = [
        run
        for run in await runs.runs()
        if project in (None, run.project) and (not state or run.state in state)
    ]
    total = len(found)
    if after is not None:
        start = _place(after)
        found = [run for run in found if (-run.started_ms, run.id) > start]
    page = found[:limit]
    following = f"{page[-1].started_ms}.{page[-1].id}" if len(found) > limit else None
    wanted = KeyFilter(last or SHOWN_IN_TABLES)
    return {"runs": [_row(run, wanted) for run in page], "total": total, "next": following}


def _place(after: str) -> tuple[int, str]:
    started_ms, _, run_id = after.partition(".")
    try:
        return -int(started_ms), run_id
    except ValueError:
        raise HTTPException(
            422, f"after={after!r}: only what a page before gave as `next` is allowed"
        ) from None


def _row(run: Run, wanted: Callable[[str], bool]) -> dict[str, Any]:
    row = run_as_dict(run)
    row["last"] = {
        host: {key: value for key, value in values.items() if wanted(key)}
        for host, values in run.last.items()
    }
    return row


@router.get("/runs/{run}", response_model=models.RunDetail)
async def one_run(run: TheRun, runs: TheLibrary) -> Response:
    """Everything known of a run but its series."""
    return _json(await run.use(lambda reader: to_json(run_as_dict(reader.run(runs.clock())), **_JSON)))


@router.get("/runs/{run}/series", response_model=list[models.SeriesInfo])
async def run_series(run: TheRun, keys: Keys = []) -> Response:  # noqa: B006
    """Which series a run has, derived rates included, with what the catalogue says of each."""
    return _json(
        await run.use(lambda reader: to_json([series.info(s) for s in reader.columns(keys).series], **_JSON))
    )


@router.get("/runs/{run}/metrics", response_model=models.Metrics)
async def run_metrics(
    run: TheRun,
    keys: Keys = [],  # noqa: B006
    host: Annotated[str | None, Query(description="Only of this host.")] = None,
    t0: Millis = None,
    t1: Millis = None,
    max_points: MaxPoints = 1000,
    resolution: Annotated[
        Literal["auto", "raw"], Query(description="`raw` = every sample, whatever `max_points` says.")
    ] = "auto",
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """Series of a run between two times, as columns.

    Where the samples are more than `max_points`, they are put into buckets that begin at multiples of
    `bucket_ms`: the same buckets at every request, so a chart does not change its shape when it is drawn
    again.
    """
    points = None if resolution == "raw" else max_points

    def read(reader: RunReader) -> bytes:
        return to_json(series.metrics(reader, keys, host, t0, t1, points), **_JSON)

    try:
        body = await run.use(read)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return await _packed(body, accept_encoding)


@router.get("/runs/{run}/history", response_model=models.Logged)
async def run_history(
    run: TheRun,
    keys: Annotated[
        list[str], Query(description="Names that were logged. All without one.", max_length=1000)
    ] = [],  # noqa: B006
    max_points: MaxPoints = 1000,
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """The numbers that `log()` wrote, by step, for each process that logged."""
    body = await run.use(lambda reader: to_json(series.logged(reader, keys, max_points), **_JSON))
    return await _packed(body, accept_encoding)


@router.get("/runs/{run}/events", response_model=list[models.Event])
async def run_events(run: TheRun, runs: TheLibrary) -> Response:
    """What happened: alerts, failures, gaps, lost records, in order of time."""
    return _json(await run.use(lambda reader: to_json(reader.run(runs.clock()).events, **_JSON)))


@router.get("/runs/{run}/console", response_model=models.ConsoleAnswer)
async def run_console(run: TheRun) -> Response:
    """The newest output of the program."""

    def read(reader: RunReader) -> bytes:
        pieces = []
        for piece in reader.console.pieces():
            writer = reader.facts.writer(piece.writer)
            place = {"host": writer.host, "rank": writer.rank}
            pieces.append({"time_ms": piece.time_ms, "stream": piece.stream, "text": piece.text, **place})
        return to_json({"cut": reader.console.cut, "pieces": pieces}, **_JSON)

    return _json(await run.use(read))


@router.get(
    "/runs/{run}/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
    description=live.__doc__,
)
async def run_live(
    request: Request,
    run: TheRun,
    runs: TheLibrary,
    after: Annotated[
        str | None,
        Query(description="`cursor` of another answer; from now on without one, from the start if empty."),
    ] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    begin = last_event_id or after
    if begin is None:
        begin = await run.use(series.cursor)
    try:
        follower = live.Follower(begin, runs.clock)
    except ValueError as error:
        raise HTTPException(422, f"after: {error}") from None
    events = live.stream(run, follower, request.app.state.closing)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


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


_JSON: Any = {"inf_nan_mode": "null", "fallback": str}
_PACK_FROM = 2000


def _json(body: bytes, **headers: str) -> Response:
    return Response(body, media_type="application/json", headers={"cache-control": "no-store", **headers})


async def _packed(body: bytes, accept_encoding: str) -> Response:
    """A long answer, compressed off the event loop: 1 MB takes 8 ms."""
    if len(body) < _PACK_FROM or "gzip" not in accept_encoding:
        return _json(body)
    packed = await run_in_threadpool(gzip.compress, body, 1)
    return _json(packed, **{"content-encoding": "gzip", "vary": "accept-encoding"})
