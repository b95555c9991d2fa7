"""Whose rights a call of a tool has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context

from runvitals.tools.assistant.runs_api import RunsApi

ApiOfKey = Callable[[str | None], RunsApi]
"""Makes the API for a key; None: with the rights of who started the program."""


def bearer(headers: Any) -> str | None:
    """Return the key in the `Authorization` of a request; None if it has none."""
    scheme, _, key = (headers.get("authorization") or "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def api_of(ctx: Context[Any, Any]) -> RunsApi:
    """Return the API with the rights of who calls a tool."""
    request = ctx.request_context.request  # None over stdio
    make: ApiOfKey = ctx.request_context.lifespan_context
    return make(None if request is None else bearer(request.headers))
