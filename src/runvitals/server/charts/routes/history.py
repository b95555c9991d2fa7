"""`/runs/{run}/history`: the numbers that a run logged, by step, and their names."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.server.access.permission import needs
from runvitals.server.charts import series
from runvitals.server.charts.overlay.axis import Extract
from runvitals.server.charts.routes.overlay import TheScale
from runvitals.server.charts.routes.tables.formats import RESPONSES, TheFormat
from runvitals.server.charts.routes.tables.responses import history_table, send_table
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes.logged_models import Logged
from runvitals.server.runs.routes.parameters import MaxPoints, StepLimit, TheRun

router = Router(responses=RUN_ERRORS)
NAMES_PER_RESPONSE = 10_000


@router.get("/runs/{run}/history", needs("run:read"), response_model=Logged, responses=RESPONSES)
async def run_history(
    request: Request,
    run: TheRun,
    format: TheFormat,
    keys: Annotated[
        list[str],
        Query(description="Names that were logged, or globs. All if none is given.", max_length=1000),
    ] = [],  # noqa: B006
    rank: Annotated[int | None, Query(description="Only of this rank.", ge=0, le=2**31 - 1)] = None,
    max_points: MaxPoints = 1000,
    resolution: Annotated[
        Literal["auto", "raw"], Query(description="`raw` = every call, regardless of `max_points`.")
    ] = "auto",
    first_step: StepLimit = None,
    last_step: StepLimit = None,
    scale: TheScale = "linear",
) -> Response:
    """The numbers that `log()` wrote, by step, for each process that logged.

    They are from `first_step` to `last_step`, both included. As a table (`format`), a row has `step`, `t`,
    `host`, `rank` and a column for each name.
    """
    part = None if resolution == "raw" else Extract(max_points, log=scale == "log")
    selection = series.LoggedSelection(tuple(keys), rank, first_step, last_step)
    if format != "json":
        return await send_table(request, history_table(run, selection, part, format))

    def read(view: RunView) -> bytes:
        return json_bytes(series.logged_values(view, selection, part))

    return await json_response(request, await read_or_422(run, read))


@router.get("/runs/{run}/history/names", needs("run:read"), response_model=list[str])
async def run_history_names(
    request: Request,
    run: TheRun,
    keys: Annotated[
        list[str],
        Query(description="Names or globs, may be repeated. All if none is given.", max_length=1000),
    ] = [],  # noqa: B006
    of: Annotated[
        Literal["numbers", "others"],
        Query(
            description="`others` = names under which texts, lists, objects, null or booleans were logged."
        ),
    ] = "numbers",
    skip: Annotated[
        int, Query(description="Leave out this many: those of the previous responses.", ge=0, le=2**53)
    ] = 0,
) -> Response:
    """The names under which numbers, or other values, were logged, sorted; 10,000 per response."""

    def read(view: RunView) -> bytes:
        matches = KeyFilter(keys)
        logged = view.logged_names() if of == "numbers" else view.other_names()
        names = sorted(name for name in logged if matches(name))
        return json_bytes(names[skip : skip + NAMES_PER_RESPONSE])

    return await json_response(request, await read_or_422(run, read, quick=True))
