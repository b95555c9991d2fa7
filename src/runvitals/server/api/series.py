"""The calls about one run's series: what there is, columns, statistics, what was logged, what is new."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import anyio
from fastapi import APIRouter, Header, HTTPException, Query, Request
from fastapi.responses import Response, StreamingResponse

from runvitals.query.statistics import of_columns
from runvitals.server import answer_memory, series
from runvitals.server.api import models
from runvitals.server.api.mlflow_names import MlflowRun, TheNamedRun
from runvitals.server.api.parameters import MaxPoints, Millis, TheChosen, TheLibrary, TheRun
from runvitals.server.api.responses import answer, json_bytes, problem_headers
from runvitals.server.api.tables.formats import RESPONSES, TheFormat
from runvitals.server.api.tables.responses import TableResponse, history_table, metrics_table
from runvitals.server.library import OpenedRun, RunView
from runvitals.server.live import follower as live
from runvitals.server.live.feed import ALWAYS_S

router = APIRouter()
MAX_WAIT_S = 30
"""Texts in one header."""


@router.get("/runs/{run}/series", response_model=list[models.SeriesInfo])
async def run_series(
    request: Request,
    run: TheNamedRun,
    chosen: TheChosen,
    skip: Annotated[
        int, Query(description="Leave out so many: those of the answers before.", ge=0, le=2**53)
    ] = 0,
) -> Response:
    """Which series a run has, rates included, and what the catalogue says of each; 10,000 an answer."""

    def read(view: RunView) -> bytes:
        return json_bytes(series.infos(view.summaries(chosen, skip)))

    return await _list(request, run, read)


@router.get("/runs/{run}/metrics", response_model=models.Metrics | models.News, responses=RESPONSES)
async def run_metrics(
    request: Request,
    run: TheNamedRun,
    runs: TheLibrary,
    chosen: TheChosen,
    format: TheFormat,
    t0: Millis = None,
    t1: Millis = None,
    max_points: MaxPoints = 1000,
    resolution: Annotated[
        Literal["auto", "raw"], Query(description="`raw` = every sample, whatever `max_points` says.")
    ] = "auto",
    after: Annotated[
        str | None,
        Query(description="`cursor` of another answer: only what came since, as soon as there is something."),
    ] = None,
    wait: Annotated[
        float, Query(description="With `after`: how long to wait for news, in seconds.", ge=0, le=MAX_WAIT_S)
    ] = 0,
) -> Response:
    """Series of a run between two times, as columns.

    Where the samples are more than `max_points`, they are put into buckets that begin at multiples of
    `bucket_ms`: the same buckets at every request, so a chart does not change its shape when it is drawn
    again.

    With `after` the answer is what a live event tells (`samples`, `calls`, `run`, `reload`), and a `cursor`.

    As a table (`format`), a row has `t`, `host`, `role` and a column for each key; beside the value of a
    bucket there are `key:min`, `key:max` and `key:n`.
    """
    if after is not None:
        if format != "json":
            raise HTTPException(422, f"after: only format=json is supported with it, not {format}")
        if isinstance(run, MlflowRun):
            raise HTTPException(422, "after: names=mlflow is not supported with it")
        return await answer(request, await _news(request, run, runs, after, wait))
    points = None if resolution == "raw" else max_points
    if format != "json":
        return await _table(request, metrics_table(run, chosen, t0, t1, points, format, runs.clock()))

    def read(view: RunView) -> bytes:
        return json_bytes(series.metrics(view, chosen, t0, t1, points))

    return await answer(request, await _read(run, read))


async def _news(request: Request, run: OpenedRun, runs: TheLibrary, after: str, wait_s: float) -> bytes:
    """What came since a cursor, waited for."""
    try:
        follower = live.Follower(after, runs.clock)
    except ValueError as error:
        raise HTTPException(422, f"after: {error}") from None
    closing: anyio.Event = request.app.state.closing
    until_s = time.monotonic() + wait_s
    told: dict[str, Any] = {}
    looked, looked_s = None, 0.0
    while True:
        version, now_s = run.version(), time.monotonic()
        if version is None or version != looked or now_s - looked_s >= ALWAYS_S:
            told = await run.use(lambda view: follower.told(view, view.position()), quick=True)
            looked, looked_s = version, now_s
        known = told.keys() - {"run"}
        left_s = until_s - time.monotonic()
        if known or left_s <= 0 or closing.is_set() or not follower.running:
            return json_bytes({"cursor": follower.cursor, **told})
        with anyio.move_on_after(min(left_s, live.POLL_S)):
            await closing.wait()


@router.get("/runs/{run}/statistics", response_model=list[models.Statistics])
async def run_statistics(
    request: Request, run: TheNamedRun, chosen: TheChosen, t0: Millis = None, t1: Millis = None
) -> Response:
    """Count, extremes, mean, percentiles and last value of each series, of every sample between two times."""

    def read(view: RunView) -> bytes:
        start, end = series.stretch(view, chosen, t0, t1)
        return json_bytes(of_columns(view.samples(chosen, start, end, series.MAX_COUNTED_VALUES)))

    return await _list(request, run, read)


async def _list(request: Request, run: OpenedRun, read: Callable[[RunView], bytes]) -> Response:
    """A list, which has no room to say what could not be read: a header does.

    Raises:
        HTTPException: 422 for what cannot be answered.
    """
    problems: list[str] = []

    def noting(view: RunView) -> bytes:
        noted = view.note_problems()
        found = read(view)
        problems.extend(noted)
        return found

    response = await answer(request, await _read(run, noting))
    response.headers.update(problem_headers(problems))
    return response


async def _read(run: OpenedRun, read: Callable[[RunView], bytes]) -> bytes:
    """The answer of a reader.

    Raises:
        HTTPException: 422 for what cannot be answered.
    """
    try:
        return await run.use(read)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


@router.get("/runs/{run}/history", response_model=models.Logged, responses=RESPONSES)
async def run_history(
    request: Request,
    run: TheRun,
    format: TheFormat,
    keys: Annotated[
        list[str], Query(description="Names that were logged. All without one.", max_length=1000)
    ] = [],  # noqa: B006
    rank: Annotated[int | None, Query(description="Only of this rank.", ge=0, le=2**31)] = None,
    max_points: MaxPoints = 1000,
    resolution: Annotated[
        Literal["auto", "raw"], Query(description="`raw` = every call, whatever `max_points` says.")
    ] = "auto",
) -> Response:
    """The numbers that `log()` wrote, by step, for each process that logged.

    As a table (`format`), a row has `step`, `t`, `host`, `rank` and a column for each name.
    """
    points = None if resolution == "raw" else max_points
    if format != "json":
        return await _table(request, history_table(run, keys, points, rank, format))

    def read(view: RunView) -> bytes:
        return json_bytes(series.logged(view, keys, points, rank))

    return await answer(request, await _read(run, read))


async def _table(request: Request, answering: Awaitable[TableResponse]) -> Response:
    """A table.

    Raises:
        HTTPException: 422 for what cannot be answered.
        Busy: the answers being sent hold too much memory.
    """
    try:
        table = await answering
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    answer_memory.hold(request, table.held_bytes)
    return table


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
        begin = await run.use(lambda view: series.cursor(view.position()), quick=True)
    try:
        follower = live.Follower(begin, runs.clock)
    except ValueError as error:
        raise HTTPException(422, f"after: {error}") from None
    events = request.app.state.feeds.stream(run, follower)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})
