"""Describes the header `Idempotency-Key` in the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from runvitals.server.access.idempotency_keys import HEADER, MAX_KEY, METHODS, REPLAYED, accepts_key

_PARAMETER: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A new random text for each request, such as a UUID. The same request again with the same "
    f"key gets the first response again, with the header `{REPLAYED}: true`, for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"},
}


def describe(app: FastAPI) -> None:
    """Add the header to the calls of an application that look at it."""
    base = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            for path, operations in base()["paths"].items():
                for method in METHODS:
                    if method.lower() in operations and accepts_key(method, path):
                        operations[method.lower()].setdefault("parameters", []).append(_PARAMETER)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own documentation has it
