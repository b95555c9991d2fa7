"""`/latest` and `/aggregate`: many runs in one response."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.durations import HOUR_MS
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.server.access.permission import needs
from runvitals.server.hosts.fleet import check_aggregate
from runvitals.server.http.errors import answering
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import Grouping
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import Keys, Millis, TheFilter, TheLibrary

router = Router(responses=INVALID_PARAMETER)


@router.get("/latest", needs("filtered run:read"), response_model=list[models.LatestSchema])
async def latest(request: Request, library: TheLibrary, run_filter: TheFilter, keys: Keys = []) -> Response:  # noqa: B006
    """The newest values of all running runs, by host."""
    with answering(422):
        values = await library.latest(run_filter, KeyFilter(keys))
    return await json_response(request, await run_in_threadpool(json_bytes, values))


@router.get("/aggregate", needs("filtered run:read"), response_model=models.Aggregate)
async def aggregate(
    request: Request,
    library: TheLibrary,
    run_filter: TheFilter,
    metric: Annotated[
        str,
        Query(
            description="A key, or a glob whose keys are aggregated together: `gpu.*.gpu`.", max_length=512
        ),
    ],
    t0: Millis = None,
    t1: Millis = None,
    bucket: Annotated[
        int | None,
        Query(
            description="Width of the buckets in ms; they begin at multiples of it since 1970. Without it "
            "there is one bucket.",
            ge=1,
            le=2**45,
        ),
    ] = None,
    group_by: Annotated[Grouping | None, Query(description="Without it, all runs are one group.")] = None,
) -> Response:
    """Count, extremes and mean of a metric over all runs that match a filter, exact at both ends.

    `t0` is an hour ago by default, `t1` is now.
    """
    end = library.clock() if t1 is None else t1
    start = end - HOUR_MS if t0 is None else t0
    with answering(422):
        check_aggregate(metric, start, end, bucket)
        groups = await library.aggregate(metric, run_filter, start, end, bucket, group_by)
    columns = ("t", "n", "min", "max", "mean")
    rows: list[dict[str, Any]] = [
        {"group": group.group, **{name: getattr(group, name).tolist() for name in columns}}
        for group in groups
    ]
    body = {"metric": metric, "t0": start, "t1": end, "bucket_ms": bucket, "groups": rows}
    return await json_response(request, await run_in_threadpool(json_bytes, body))
