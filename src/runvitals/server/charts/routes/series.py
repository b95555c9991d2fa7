"""`/runs/{run}/series`, `/metrics` and `/statistics`: the sampled series of one run."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import anyio
from fastapi import HTTPException, Query, Request
from fastapi.responses import Response

from runvitals.readers.journals.statistics import of_columns
from runvitals.server.access.permission import needs
from runvitals.server.charts import series
from runvitals.server.charts.routes.mlflow_names import MlflowRun, TheNamedRun
from runvitals.server.charts.routes.tables.formats import RESPONSES, TheFormat
from runvitals.server.charts.routes.tables.responses import metrics_table, send_table
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, list_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import OpenedRun, RunView
from runvitals.server.live import follower as live
from runvitals.server.live.feed import CHECK_INTERVAL_S
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import LogFrom, MaxPoints, Millis, TheLibrary, TheSelection
from runvitals.server.services import services_of

router = Router(responses=RUN_ERRORS)
MAX_WAIT_S = 30


@router.get("/runs/{run}/series", needs("run:read"), response_model=list[models.SeriesInfo])
async def run_series(
    request: Request,
    run: TheNamedRun,
    selection: TheSelection,
    skip: Annotated[
        int,
        Query(
            description="Leave out this many: those of the previous responses.",
            ge=0,
            le=2**53,
        ),
    ] = 0,
) -> Response:
    """The series of a run, derived rates included, with their metric definitions; 10,000 per response."""

    def read(view: RunView) -> bytes:
        return json_bytes(series.series_infos(view.summaries(selection, skip)))

    return await list_response(request, run, read)


@router.get(
    "/runs/{run}/metrics", needs("run:read"), response_model=models.Metrics | models.News, responses=RESPONSES
)
async def run_metrics(
    request: Request,
    run: TheNamedRun,
    library: TheLibrary,
    selection: TheSelection,
    format: TheFormat,
    t0: Millis = None,
    t1: Millis = None,
    log_from: LogFrom = None,
    max_points: MaxPoints = 1000,
    resolution: Annotated[
        Literal["auto", "raw"], Query(description="`raw` = every sample, regardless of `max_points`.")
    ] = "auto",
    after: Annotated[
        str | None,
        Query(
            description="`cursor` of another response: return only what is newer, as soon as there is "
            "something."
        ),
    ] = None,
    wait: Annotated[
        float, Query(description="With `after`: how long to wait for news, in seconds.", ge=0, le=MAX_WAIT_S)
    ] = 0,
) -> Response:
    """Series of a run between two times, as columns.

    A series with more than `max_points` samples is reduced to buckets that begin at multiples of `bucket_ms`.
    The buckets are the same in every response, so a chart keeps its shape when it is drawn again.

    With `after` the response has what a live event has (`samples`, `calls`, `run`, `reload`), and a `cursor`.

    As a table (`format`), a row has `t`, `host`, `role` and a column for each key; beside the value of a
    bucket there are `key:min`, `key:max` and `key:n`.
    """
    if after is not None:
        if format != "json":
            raise HTTPException(422, f"after: only format=json is supported with it, not {format}")
        if isinstance(run, MlflowRun):
            raise HTTPException(422, "after: names=mlflow is not supported with it")
        return await json_response(request, await _changes_since(request, run, library, after, wait))
    points = None if resolution == "raw" else max_points
    if format != "json":
        table = metrics_table(run, selection, t0, t1, points, format, library.clock(), log_from)
        return await send_table(request, table)

    def read(view: RunView) -> bytes:
        return json_bytes(series.metrics(view, selection, t0, t1, points, log_from))

    return await json_response(request, await read_or_422(run, read))


async def _changes_since(
    request: Request, run: OpenedRun, library: TheLibrary, after: str, wait_s: float
) -> bytes:
    """Return what is newer than a cursor. Waits up to `wait_s` until there is something."""
    try:
        follower = live.Follower(after, library.clock)
    except ValueError as error:
        raise HTTPException(422, f"after: {error}") from None
    closing = services_of(request).closing
    until_s = time.monotonic() + wait_s
    changes: dict[str, Any] = {}
    read_version, read_s = None, 0.0
    while True:
        version, now_s = run.version(), time.monotonic()
        if version is None or version != read_version or now_s - read_s >= CHECK_INTERVAL_S:
            changes = await run.use(lambda view: follower.changes(view, view.position()), quick=True)
            read_version, read_s = version, now_s
        left_s = until_s - time.monotonic()
        if changes.keys() - {"run"} or left_s <= 0 or closing.is_set() or not follower.running:
            return json_bytes({"cursor": follower.cursor, **changes})
        with anyio.move_on_after(min(left_s, live.POLL_S)):
            await closing.wait()


@router.get("/runs/{run}/statistics", needs("run:read"), response_model=list[models.StatisticsSchema])
async def run_statistics(
    request: Request, run: TheNamedRun, selection: TheSelection, t0: Millis = None, t1: Millis = None
) -> Response:
    """Count, extremes, mean, percentiles and last value of each series, of all samples between two times."""

    def read(view: RunView) -> bytes:
        start, end = series.time_range(view, selection, t0, t1)
        return json_bytes(of_columns(view.samples(selection, start, end, series.MAX_STATISTICS_VALUES)))

    return await list_response(request, run, read)
