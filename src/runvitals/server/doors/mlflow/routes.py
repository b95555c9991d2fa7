"""All routes of this door. `/health`, `/version` and the response to unknown endpoints are here."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow import (
    artifact_routes,
    experiment_routes,
    lineage_routes,
    logged_model_routes,
    metric_routes,
    model_version_routes,
    multipart_routes,
    page_artifact_routes,
    registered_model_routes,
    run_routes,
)
from runvitals.server.doors.mlflow.errors import ENDPOINT_NOT_FOUND, MlflowError
from runvitals.server.doors.mlflow.not_here import reason
from runvitals.server.doors.mlflow.requests import mlflow_router, to_response
from runvitals.server.http.router import Router

VERSION: Final = "3.0.0"
"""The version of MLflow whose API this is; clients use it to choose what they ask for."""

_pages: Final = mlflow_router("")
_others: Final = mlflow_router()


@_pages.get("/health", needs(PUBLIC))
async def health() -> Response:
    """Say that the server runs."""
    return PlainTextResponse("OK")


@_pages.get("/version", needs(PUBLIC))
async def version() -> Response:
    """Return the version of MLflow whose API this is."""
    return PlainTextResponse(VERSION)


@_others.get("/server-info", needs(PUBLIC))
async def server_info() -> Response:
    """Return what MLflow 3 asks servers for: this one has no workspaces."""
    return to_response({"store_type": "SqlStore", "workspaces_enabled": False})


@_others.api_route("/{rest:path}", needs(PUBLIC), methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
async def unknown(request: Request, rest: str) -> Response:
    """Refuse what MLflow has besides."""
    raise MlflowError(ENDPOINT_NOT_FOUND, reason(request.method, rest))


router: Final = Router()
for _part in (
    metric_routes.first,
    experiment_routes.router,
    run_routes.router,
    metric_routes.router,
    registered_model_routes.router,
    model_version_routes.router,
    logged_model_routes.router,
    lineage_routes.router,
    artifact_routes.lists,
    page_artifact_routes.router,
    page_artifact_routes.pages,
    multipart_routes.router,
    multipart_routes.addresses,
    artifact_routes.router,
    _pages,
    _others,
):
    router.include_router(_part)
