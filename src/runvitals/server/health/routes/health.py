"""`/healthz`, `/readyz` and `/metrics`: what a shared server tells of itself."""

from __future__ import annotations

import asyncio
from functools import partial

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from runvitals.server.access.actions import AUTHENTICATED, PUBLIC, Action
from runvitals.server.access.identification.token_required import METRICS_PATH
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import requester_of
from runvitals.server.access.resources import Organisation
from runvitals.server.http.latest_reading import MOMENT_S
from runvitals.server.http.router import Router
from runvitals.server.services import SharedServices, shared_services_of
from runvitals.store.errors import MetadataStoreUnavailable

router = Router(include_in_schema=False)


@router.get("/healthz", dependencies=[needs(PUBLIC)])
async def live(request: Request) -> Response:
    """Say that the process serves."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", dependencies=[needs(PUBLIC)])
async def ready(request: Request) -> Response:
    """Say whether samples become durable."""
    problem, warnings = await shared_services_of(request).health.readiness()
    body = {"ready": problem is None, "problem": problem, "warnings": warnings}
    return JSONResponse(body, 503 if problem else 200)


@router.get(METRICS_PATH, dependencies=[needs(AUTHENTICATED)])
async def metrics(request: Request) -> Response:
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
