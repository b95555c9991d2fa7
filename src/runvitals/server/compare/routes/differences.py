"""`/runs/{run}/differences`: which metrics differ most between a time range and the time around it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.server.access.permission import needs
from runvitals.server.compare.differences import differences
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheRun, TheSelection

router = Router(responses=RUN_ERRORS)
Time = Annotated[int, Query(ge=-(2**53), le=2**53, description="ms UTC, included.")]


@router.get("/runs/{run}/differences", needs("run:read"), response_model=models.Differences)
async def run_differences(
    request: Request,
    run: TheRun,
    selection: TheSelection,
    t0: Time,
    t1: Time,
    limit: Annotated[int, Query(description="How many metrics to return.", ge=1, le=200)] = 20,
) -> Response:
    """The metrics, sampled and logged, that differ most between `t0` … `t1` and the time around it.

    Compared are the medians and the farthest values, in units of the spread outside (`statistic`). Probable
    causes come first. The time around is ten times as long as the range, and at least 30 s, before and after
    it. Counters are not compared, their rates are. A series with too few values on one side is left out.
    """

    def read(view: RunView) -> bytes:
        return json_bytes(differences(view, selection, t0, t1, limit))

    return await json_response(request, await read_or_422(run, read))
