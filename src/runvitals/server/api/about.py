"""`/about`: what the server is and what it supports."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

import runvitals
from runvitals.server.api import models
from runvitals.server.api.parameters import TheLibrary

_CAPABILITIES = ("search", "statistics", "latest", "aggregate")
_EDIT_CAPABILITIES = ("stop", "delete", "edit")
"""Of a shared server only."""

router = APIRouter()


@router.get("/about", response_model=models.About)
async def about(library: TheLibrary) -> Any:
    """What this server is, and what it can do."""
    capabilities = [*_CAPABILITIES, *(_EDIT_CAPABILITIES if library.kind == "server" else ())]
    return {"version": runvitals.__version__, "kind": library.kind, "capabilities": capabilities}
