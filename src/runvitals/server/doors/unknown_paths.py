"""The last routes of doors, for paths that no other route has.

An error has the form that the door's clients read; it is not the page. MLflow and Prometheus' queries have
one of their own for most paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from fastapi import HTTPException, Request
from starlette.responses import JSONResponse, Response

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import ENDPOINT_NOT_FOUND, MlflowError, error_response
from runvitals.server.http.router import ANY_METHOD, Endpoint, Router, refuse_other_methods, wrong_method

router: Final = Router(include_in_schema=False)
_MAX_SHOWN: Final = 200


def _last_routes(*beginnings: str) -> Callable[[Endpoint], Endpoint]:
    """Decorate the route of all paths with these beginnings, and the beginnings themselves."""

    def add(endpoint: Endpoint) -> Endpoint:
        for beginning in beginnings:
            for path in (beginning, beginning + "/{rest:path}"):
                router.add_api_route(path, endpoint, methods=ANY_METHOD, dependencies=[needs(PUBLIC)])
        return endpoint

    return add


def _unknown_text(request: Request) -> str:
    return f"there is no {request.url.path[:_MAX_SHOWN]}"


@_last_routes("/files", "/artifactsV2", "/wandb")
async def unknown_file(request: Request) -> None:
    """Refuse an address of wandb's clients that is none of their queries."""
    refuse_other_methods(request)
    raise HTTPException(404, _unknown_text(request))


@_last_routes("/graphql")
async def unknown_query(request: Request) -> Response:
    """Refuse an address of wandb's queries."""
    text, allowed = wrong_method(request) or (_unknown_text(request), "")
    body = msgspec.json.encode({"data": None, "errors": [{"message": text}]})
    headers = {"allow": allowed} if allowed else {}
    return Response(body, 405 if allowed else 404, headers, "application/json")


@_last_routes("/mlflow", "/ajax-api", "/get-artifact", "/model-versions")
async def unknown_endpoint(request: Request) -> Response:
    """Refuse an address of MLflow's clients."""
    text, _ = wrong_method(request) or (_unknown_text(request), "")
    return error_response(MlflowError(ENDPOINT_NOT_FOUND, text))


@_last_routes("/prometheus")
async def unknown_prometheus(request: Request) -> Response:
    """Refuse an address of Prometheus' API."""
    text, _ = wrong_method(request) or (_unknown_text(request), "")
    return JSONResponse({"status": "error", "errorType": "not_found", "error": text}, 404)


@_last_routes("/scim")
async def unknown_scim(request: Request) -> Response:
    """Refuse an address of SCIM."""
    from runvitals.server.doors.scim.messages import error_response as scim_error

    text, allowed = wrong_method(request) or (_unknown_text(request), "")
    return scim_error(405 if allowed else 404, text)
