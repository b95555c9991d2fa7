"""`/about`: what the server is and what it supports."""

from __future__ import annotations

from typing import Any

from fastapi import Request

import runvitals
from runvitals.server.access.permission import needs, route_check
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheLibrary

_CAPABILITIES = ("search", "statistics", "latest", "aggregate", "media", "delete", "edit")
_SHARED_CAPABILITIES = ("stop", "views")
"""Of a shared server only."""

router = Router()


@router.get("/about", needs("public"), response_model=models.About)
async def about(request: Request, library: TheLibrary) -> Any:
    """Return this server's version, kind and capabilities."""
    shared = _SHARED_CAPABILITIES if library.kind == "server" else ()
    access = route_check(request)
    return {
        "version": runvitals.__version__,
        "kind": library.kind,
        "auth": "open" if access is None else access.mode(),
        "capabilities": [*_CAPABILITIES, *shared],
    }
