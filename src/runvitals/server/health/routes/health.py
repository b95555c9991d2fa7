"""`/healthz`, `/readyz` and `/metrics`: what a shared server tells of itself."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from runvitals.server.access.actions import AUTHENTICATED, PUBLIC, Action
from runvitals.server.access.identification.token_required import METRICS_PATH
from runvitals.server.access.permission import RoutePermission
from runvitals.server.access.requester import requester_of
from runvitals.server.access.resources import Organisation
from runvitals.server.http.latest_reading import MOMENT_S
from runvitals.server.http.plain_routes import PlainRoute
from runvitals.server.services import SharedServices, shared_services_of
from runvitals.store.errors import MetadataStoreUnavailable


async def _live(request: Request) -> Response:
    """Say that the process serves."""
    return PlainTextResponse("ok\n")


async def _ready(request: Request) -> Response:
    """Say whether samples become durable."""
    problem, warnings = await shared_services_of(request).health.readiness()
    body = {"ready": problem is None, "problem": problem, "warnings": warnings}
    return JSONResponse(body, 503 if problem else 200)


async def _metrics(request: Request) -> Response:
    """Give the metrics of the server, and of usage to those who may read them."""
    services = shared_services_of(request)
    text, usage = await asyncio.gather(services.health.exposition(), _usage_text(services, request))
    return PlainTextResponse(text + usage, media_type="text/plain; version=0.0.4")


async def _usage_text(services: SharedServices, request: Request) -> str:
    """Return the part of `/metrics` that only some may read.

    It is empty while the metadata store cannot say who may.
    """
    may = partial(services.access.may, requester_of(request), Action.BILLING_READ, Organisation())
    with anyio.move_on_after(MOMENT_S):
        try:
            if await anyio.to_thread.run_sync(may, abandon_on_cancel=True):
                return services.health.usage_gauges.text
        except MetadataStoreUnavailable:
            return ""
    return ""


ROUTES: Final = (
    PlainRoute("/healthz", RoutePermission(PUBLIC), _live),
    PlainRoute("/readyz", RoutePermission(PUBLIC), _ready),
    PlainRoute(METRICS_PATH, RoutePermission(AUTHENTICATED), _metrics),
)
