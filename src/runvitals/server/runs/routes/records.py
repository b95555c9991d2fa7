"""`/runs/{run}/events` and `/failure`: what happened to a run, and why it failed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.model.failure import CONSOLE_BYTES, failure_of, has_failed
from runvitals.monitoring.environment import redaction
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.output_models import FailureSchema
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/events", needs("run:read"), response_model=list[models.EventSchema])
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


@router.get("/runs/{run}/failure", needs("run:read"), response_model=FailureSchema | None)
async def run_failure(request: Request, run: TheRun, library: TheLibrary) -> Response:
    """Why the run failed, and what it printed last; null if it has not failed."""

    def read(view: RunView) -> bytes:
        ended = view.run(library.clock())
        if not has_failed(ended):
            return b"null"
        _, pieces = view.console(CONSOLE_BYTES)
        return json_bytes(failure_of(ended, pieces, redaction.text))

    return await json_response(request, await run.use(read))
