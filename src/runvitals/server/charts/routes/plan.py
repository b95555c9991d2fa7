"""`/runs/{run}/plan`: the series of a run as the page needs them to lay out its charts."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.server.access.permission import needs
from runvitals.server.charts import series
from runvitals.server.charts.routes import plan_models
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes.parameters import Keys, TheRun

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/plan", needs("run:read"), response_model=plan_models.RunPlanSchema)
async def run_plan(
    request: Request,
    run: TheRun,
    keys: Keys = [],  # noqa: B006
    skip: Annotated[
        int, Query(description="Leave out this many series: `next` of the previous response.", ge=0, le=2**53)
    ] = 0,
) -> Response:
    """The series of a run by metric, derived rates included, without their values; 10,000 per response.

    It is much smaller and faster than `/series`, which has the extent of every series.
    """

    def read(view: RunView) -> bytes:
        problems = view.note_problems()
        position = view.position()  # first, so that a stream after it misses no series that the plan lacks
        page = view.plan().page(KeyFilter(keys) if keys else None, skip)
        about = {"run": view.run_id, "cursor": series.cursor(position), "newest_ms": view.newest_ms()}
        return json_bytes({**about, **page, "problems": list(problems)})

    return await json_response(request, await read_or_422(run, read))
