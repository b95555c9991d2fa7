"""`/runs/{run}/live`: what is new in a run, as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, HTTPException, Query, Request
from fastapi.responses import StreamingResponse

from runvitals.server.access.permission import needs
from runvitals.server.charts import series
from runvitals.server.http.open_streams import EventStream
from runvitals.server.http.responses import RUN_ERRORS
from runvitals.server.http.router import Router
from runvitals.server.live import follower as live
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun
from runvitals.server.services import services_of

router = Router(responses=RUN_ERRORS)


@router.get(
    "/runs/{run}/live",
    needs("run:read"),
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
    description=live.__doc__,
)
async def run_live(
    request: Request,
    run: TheRun,
    library: TheLibrary,
    after: Annotated[
        str | None,
        Query(
            description="`cursor` of another response. Without it the stream starts now; with an empty "
            "one, at the run's first record."
        ),
    ] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventStream:
    """Stream what is new in a run."""
    begin = last_event_id or after
    if begin is None:
        begin = await run.use(lambda view: series.cursor(view.position()), quick=True)
    try:
        follower = live.Follower(begin, library.clock)
    except ValueError as error:
        raise HTTPException(422, f"after: {error}") from None
    services = services_of(request)
    return EventStream(request, services.open_streams, services.feeds.stream(run, follower))
