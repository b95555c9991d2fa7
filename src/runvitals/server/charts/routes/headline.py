"""`/runs/{run}/headline`: how a run is going, in a few numbers."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from runvitals.server.access.permission import needs
from runvitals.server.charts.headline import headline
from runvitals.server.charts.routes import headline_models
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/headline", response_model=headline_models.Headline, dependencies=[needs("run:read")])
async def run_headline(request: Request, library: TheLibrary, run: TheRun) -> Response:
    """How a run is going: its goal metric, its progress, its throughput and the use of its devices.

    The goal metric is the one with a goal of `define_metric`, else a loss or an accuracy on held-out data,
    else of the training.
    """

    def read(view: RunView) -> bytes:
        return json_bytes(headline(view, library.clock()))

    return await json_response(request, await run.use(read))
