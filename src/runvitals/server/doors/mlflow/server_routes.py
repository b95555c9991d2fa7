"""`/health`, `/version`, and the answer to endpoints that do not exist."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import ENDPOINT_NOT_FOUND, MlflowError
from runvitals.server.doors.mlflow.requests import PREFIX, answer, mlflow_router

VERSION: Final = "3.0.0"
"""The version of MLflow whose API this is; clients use it to choose what they ask for."""

pages: Final = mlflow_router("")
others: Final = mlflow_router()


@pages.get("/health", dependencies=[needs(PUBLIC)])
async def health() -> Response:
    return PlainTextResponse("OK")


@pages.get("/version", dependencies=[needs(PUBLIC)])
async def version() -> Response:
    return PlainTextResponse(VERSION)


@others.get("/server-info", dependencies=[needs(PUBLIC)])
async def server_info() -> Response:
    return answer({"store_type": "SqlStore", "workspaces_enabled": False})


@others.api_route(
    "/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"], dependencies=[needs(PUBLIC)]
)
async def unknown(request: Request, rest: str) -> Response:
    raise MlflowError(ENDPOINT_NOT_FOUND, f"{request.method} {PREFIX}/{rest[:200]} is not supported")
