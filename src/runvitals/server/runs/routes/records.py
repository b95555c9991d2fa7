"""`/runs/{run}/events`, `/console` and `/failure`: what happened to a run, what it printed, why it failed."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.model.failure import CONSOLE_BYTES, failure_of, has_failed
from runvitals.monitoring.environment import redaction
from runvitals.readers.journals.console import KEPT_BYTES
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.output_models import ConsoleAnswer, FailureSchema
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun

_MAX_BYTES: Final = 16 << 20

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


@router.get("/runs/{run}/console", response_model=ConsoleAnswer, dependencies=[needs("run:read")])
async def run_console(
    request: Request,
    run: TheRun,
    max_bytes: Annotated[int, Query(ge=1, le=_MAX_BYTES, description="Of the newest output.")] = KEPT_BYTES,
) -> Response:
    """The newest output of the program."""

    def read(view: RunView) -> bytes:
        cut, pieces = view.console(max_bytes)
        return json_bytes({"cut": cut, "pieces": [piece._asdict() for piece in pieces]})

    return await json_response(request, await run.use(read, quick=max_bytes <= KEPT_BYTES))


@router.get("/runs/{run}/failure", response_model=FailureSchema | None, dependencies=[needs("run:read")])
async def run_failure(request: Request, run: TheRun, library: TheLibrary) -> Response:
    """Why the run failed, and what it printed last; null if it has not failed."""

    def read(view: RunView) -> bytes:
        ended = view.run(library.clock())
        if not has_failed(ended):
            return b"null"
        _, pieces = view.console(CONSOLE_BYTES)
        return json_bytes(failure_of(ended, pieces, redaction.text))

    return await json_response(request, await run.use(read))
