"""The calls about many runs at once: the newest values of all that run, one metric over all of a filter."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.query.key_filter import KeyFilter
from runvitals.server.api import models
from runvitals.server.api.parameters import Keys, Millis, TheFilter, TheLibrary
from runvitals.server.api.responses import answer, json_bytes
from runvitals.server.fleet import check_aggregate
from runvitals.server.library import Grouping

router = APIRouter()
_HOUR_MS = 3_600_000


@router.get("/latest", response_model=list[models.Latest])
async def latest(request: Request, runs: TheLibrary, wanted: TheFilter, keys: Keys = []) -> Response:  # noqa: B006
    """The newest values of all runs that are running, host by host."""
    try:
        found = await runs.latest(wanted, KeyFilter(keys))
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return await answer(request, await run_in_threadpool(json_bytes, found))


@router.get("/aggregate", response_model=models.Aggregate)
async def aggregate(
    request: Request,
    runs: TheLibrary,
    wanted: TheFilter,
    metric: Annotated[
        str,
        Query(description="A key, or a glob over keys that are taken together: `gpu.*.gpu`.", max_length=512),
    ],
    t0: Millis = None,
    t1: Millis = None,
    bucket: Annotated[
        int | None,
        Query(
            description="Width of the buckets in ms; they begin at multiples of it since 1970. One bucket "
            "for all without it.",
            ge=1,
            le=2**45,
        ),
    ] = None,
    group_by: Annotated[Grouping | None, Query(description="All runs together without it.")] = None,
) -> Response:
    """Count, extremes and mean of a metric over all runs of a filter, exact at both ends of the range.

    From an hour ago, and to now, where `t0` and `t1` do not say otherwise.
    """
    end = runs.clock() if t1 is None else t1
    start = end - _HOUR_MS if t0 is None else t0
    try:
        check_aggregate(metric, start, end, bucket)
        groups = await runs.aggregate(metric, wanted, start, end, bucket, group_by)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    found: list[dict[str, Any]] = [
        {
            "group": one.group,
            **{name: getattr(one, name).tolist() for name in ("t", "n", "min", "max", "mean")},
        }
        for one in groups
    ]
    said = {"metric": metric, "t0": start, "t1": end, "bucket_ms": bucket, "groups": found}
    return await answer(request, await run_in_threadpool(json_bytes, said))
