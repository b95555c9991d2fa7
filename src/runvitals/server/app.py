"""The ASGI application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

import runvitals
from runvitals.monitoring.environment import redaction
from runvitals.server.access.actions import AUTHENTICATED, PUBLIC
from runvitals.server.access.permission import needs
from runvitals.server.error_responses import add_error_handlers
from runvitals.server.http import page
from runvitals.server.http.api_document import ApiDocument
from runvitals.server.http.buffered_body import BufferedBodies
from runvitals.server.http.errors import field_name
from runvitals.server.http.known_parameters import check_known_parameters
from runvitals.server.http.response_memory import BoundedResponses
from runvitals.server.http.responses import REFUSALS, SHARED_ERRORS, ErrorResponses, json_response
from runvitals.server.http.router import (
    ANY_METHOD,
    ImportedRoutes,
    LazyRoute,
    Router,
    RouterModule,
    refuse_other_methods,
)
from runvitals.server.http.secret_fields import is_secret_field
from runvitals.server.services import Services

_COMMON_ROUTES = RouterModule("routes", ("/api/v1/",))
"""Of the page of this machine and of a shared server."""
_PROJECTS_BY_NAME = RouterModule("projects.routes", ("/api/v1/projects/",), ("projects_by_name",), "/api/v1")
"""The last, because the name of a project may have a `/`, as other paths have."""


def application(
    services: Services, static: str = page.FOLDER, routers: Sequence[Router | RouterModule] = ()
) -> FastAPI:
    """The API and the page, without authentication.

    Args:
        routers: of resources that only a shared server has.
    """
    app = FastAPI(
        title="runvitals",
        version=runvitals.__version__,
        description="Runs, their vital signs, what they logged, live. Times are ms UTC; null is a gap.",
        openapi_url=None,  # served by our own route, which declares who may read it
        docs_url=None,  # both of these pages load scripts from a CDN
        redoc_url=None,
    )
    app.state.api_document = ApiDocument(app)
    app.openapi = app.state.api_document.compute  # type: ignore[method-assign]  # as FastAPI documents it
    app.state.services = services
    refusals = tuple(REFUSALS) if routers else ()
    app.router.routes.append(_imported_routes(_COMMON_ROUTES, refusals))
    for router in routers:
        if isinstance(router, RouterModule):
            app.router.routes.append(_imported_routes(router, tuple(SHARED_ERRORS)))
        else:
            app.router.routes.extend(checked_routes(router, tuple(SHARED_ERRORS)))
    app.router.routes.append(_imported_routes(_PROJECTS_BY_NAME, refusals))
    app.router.routes.extend(_last_routes.routes)
    app.mount("/", page.Page(static))
    app.add_middleware(BoundedResponses, memory=services.response_memory)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)
    app.add_middleware(BufferedBodies)
    add_error_handlers(app)
    app.add_exception_handler(RequestValidationError, _invalid_parameter)
    return app


_checked: dict[tuple[int, tuple[int | str, ...]], tuple[Router, list[LazyRoute]]] = {}
"""By the id of a router, which the value keeps from being used again, and statuses: see `checked_routes`."""


def checked_routes(router: Router, statuses: tuple[int | str, ...]) -> list[LazyRoute]:
    """The routes of a router, with the check of parameters and the errors of these statuses.

    All applications of a process share them, so that FastAPI analyses each only once.
    """
    key = (id(router), statuses)
    if key not in _checked:
        parent = Router()
        errors: ErrorResponses = {status: SHARED_ERRORS[status] for status in statuses}
        parent.include_router(router, dependencies=[Depends(check_known_parameters)], responses=errors)
        _checked[key] = (router, parent.routes)
    return _checked[key][1]


def _imported_routes(module: RouterModule, statuses: tuple[int | str, ...]) -> ImportedRoutes:
    return ImportedRoutes(module.beginnings, lambda: checked_routes(module.load(), statuses))


_MAX_ECHOED_CHARACTERS = 200
"""Of a wrong value, in the error response."""
_MAX_CLEANED_CHARACTERS = 4000
"""Of a wrong value, which are searched for secrets: long enough for any that begins in what is shown."""
_last_routes = Router(prefix="/api", include_in_schema=False)


@_last_routes.get("/v1/openapi.json", needs(AUTHENTICATED))
async def _openapi(request: Request) -> Response:
    return await json_response(request, await request.app.state.api_document.json())


@_last_routes.api_route("", needs(PUBLIC), methods=ANY_METHOD)
@_last_routes.api_route("/{rest:path}", needs(PUBLIC), methods=ANY_METHOD)
async def _no_such_route(request: Request) -> None:
    path = request.url.path[:_MAX_ECHOED_CHARACTERS]
    refuse_other_methods(request)
    raise HTTPException(404, f"there is no {path}; /api/v1/openapi.json lists the routes")


async def _invalid_parameter(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [(field_name(problem["loc"][1:]), problem) for problem in error.errors()]
    text = "; ".join(f"{name}{_value_text(name, problem)}: {problem['msg']}" for name, problem in problems)
    fields = {name: problem["msg"] for name, problem in problems if problem["loc"][0] == "body" and name}
    return JSONResponse({"error": text, **({"fields": fields} if fields else {})}, status_code=422)


def _value_text(name: str, problem: dict[str, Any]) -> str:
    """The wrong value; not where it is or may contain a secret.

    That of a missing field is the whole body, that of a field whose name we do not know may be a password.
    """
    value = problem.get("input")
    if not name or problem["type"] == "extra_forbidden" or is_secret_field(name) or _has_parts(value):
        return ""
    return f"={_shorten(value)}"


def _has_parts(value: object) -> bool:
    """Return whether a value has named parts, any of which may be secret."""
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_parts, value)))


def _shorten(value: object) -> str:
    text = redaction.text(repr(value)[:_MAX_CLEANED_CHARACTERS])
    return text if len(text) <= _MAX_ECHOED_CHARACTERS else f"{text[:_MAX_ECHOED_CHARACTERS]}…"
