"""`/runs/{run}/events`: alerts, failures, gaps and lost records of a run."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.server.access.permission import needs
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/events", response_model=list[models.EventSchema], dependencies=[needs("run:read")])
async def run_events(
    request: Request,
    run: TheRun,
    library: TheLibrary,
    skip: Annotated[
        int, Query(description="Leave out this many of the newest events, to get older ones.", ge=0, le=2**53)
    ] = 0,
    limit: Annotated[
        int, Query(description="How many events to return: the newest.", ge=1, le=10_000)
    ] = 10_000,
) -> Response:
    """Alerts, failures, gaps and lost records, in order of time."""

    def read(view: RunView) -> bytes:
        return json_bytes(view.events(library.clock(), skip, limit))

    return await json_response(request, await run.use(read, quick=True))
