"""`/runs/{run}/console`: the recorded output of a run's program."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.readers.journals.console import KEPT_BYTES
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheRun

_MAX_BYTES: Final = 16 << 20

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/console", response_model=models.ConsoleAnswer, dependencies=[needs("run:read")])
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
