"""Routes that FastAPI analyses when the first request needs them, instead of all at the start.

A shared server has 360 routes, each of which takes FastAPI 3 ms of CPU; the page needs 20 of them. A `Router`
collects routes as FastAPI's `APIRouter` does, and each `LazyRoute` makes its `APIRoute` once.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from json import JSONDecodeError
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Receive, Scope, Send

from runvitals.model import json_values
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.immediate import call_without_threads
from runvitals.server.http.plain_routes import PlainRoute

ANY_METHOD: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_MAX_SHOWN: Final = 200
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Responses = Mapping[int | str, dict[str, Any]]
_FOUND = "runvitals.route"
"""The key of a request's scope under which `ImportedRoutes` keeps the route that it found."""


class _JsonRequest(Request):
    """A request whose body is decoded within the limits of all JSON."""

    async def json(self) -> Any:
        try:
            return json_values.decode(await self.body())
        except (JSONDecodeError, UnicodeDecodeError):  # which FastAPI answers
            raise
        except ValueError as error:
            field = error.field if isinstance(error, json_values.InvalidValue) else ""
            if field:
                raise InvalidFields({field: str(error)}) from None
            raise HTTPException(422, f"invalid body: {error}") from None


class JsonRoute(APIRoute):
    """A route that takes no JSON which could not be stored and shown: see `model.json_values`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, with requests that read JSON strictly."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive, request._send))

        return answer


class LazyRoute(BaseRoute):
    """A route with the options of an `APIRoute`, which it makes when the first request matches.

    Args:
        dependencies: as made by `Depends`.
        route_class: of the `APIRoute`.
        options: all others, such as `response_model`.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        methods: Sequence[str],
        dependencies: Sequence[Any],
        responses: Responses,
        include_in_schema: bool,
        route_class: type[APIRoute],
        options: Mapping[str, Any],
    ) -> None:
        self.path = path
        self.endpoint = endpoint
        self.methods = frozenset(methods)
        self.dependencies = dependencies
        self.responses = responses
        self.include_in_schema = include_in_schema
        self._route_class = route_class
        self._options = options
        self._beginning = path.partition("{")[0]

    def within(
        self, prefix: str, dependencies: Sequence[Any], responses: Responses, include_in_schema: bool
    ) -> LazyRoute:
        """The same route in a router that includes it."""
        return LazyRoute(
            prefix + self.path,
            self.endpoint,
            tuple(self.methods),
            (*dependencies, *self.dependencies),
            {**responses, **self.responses},
            include_in_schema and self.include_in_schema,
            self._route_class,
            self._options,
        )

    @cached_property
    def api_route(self) -> APIRoute:
        """FastAPI's route, which analyses the function and its dependencies."""
        route = self._route_class(
            self.path,
            self.endpoint,
            methods=set(self.methods),
            dependencies=self.dependencies,
            responses=dict(self.responses),
            include_in_schema=self.include_in_schema,
            **self._options,
        )
        call_without_threads(route.dependant)
        return route

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], dict[str, Convertor[Any]]]:
        pattern, _, convertors = compile_path(self.path)
        return pattern, convertors

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route, as Starlette's routes answer it."""
        path: str = scope["path"]
        if scope["type"] != "http" or not path.startswith(self._beginning):
            return Match.NONE, {}
        pattern, convertors = self._compiled
        matched = pattern.match(path)
        if matched is None:
            return Match.NONE, {}
        parameters = {name: convertors[name].convert(value) for name, value in matched.groupdict().items()}
        child: Scope = {
            "endpoint": self.endpoint,
            "path_params": {**scope.get("path_params", {}), **parameters},
        }
        return Match.FULL if scope["method"] in self.methods else Match.PARTIAL, child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matches."""
        scope["route"] = self.api_route
        await self.api_route.handle(scope, receive, send)


class Router:
    """Collects routes, with what they share.

    Args:
        prefix: of all paths.
        responses: errors that all of them may answer, for the OpenAPI document.
        include_in_schema: whether the OpenAPI document describes them.

    Example:
        >>> router = Router(prefix="/api/v1")
        >>> @router.get("/runs/{run}", needs("run:read"))
        ... async def read_run(run: TheRun) -> Response: ...
    """

    def __init__(
        self,
        prefix: str = "",
        *,
        responses: Responses | None = None,
        route_class: type[APIRoute] = JsonRoute,
        include_in_schema: bool = True,
    ) -> None:
        self.prefix = prefix
        self.routes: list[LazyRoute] = []
        self._responses = responses or {}
        self._route_class = route_class
        self._include_in_schema = include_in_schema

    def add_api_route(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Sequence[str] = ("GET",),
        dependencies: Sequence[Any] = (),
        responses: Responses | None = None,
        include_in_schema: bool = True,
        **options: Any,
    ) -> None:
        """Add a route. `options`: others of FastAPI's `add_api_route`, such as `status_code`."""
        self.routes.append(
            LazyRoute(
                self.prefix + path,
                endpoint,
                methods,
                dependencies,
                {**self._responses, **(responses or {})},
                self._include_in_schema and include_in_schema,
                self._route_class,
                options,
            )
        )

    def include_router(
        self, router: Router, *, dependencies: Sequence[Any] = (), responses: Responses | None = None
    ) -> None:
        """Add the routes of another router, with further dependencies and responses."""
        shared = {**self._responses, **(responses or {})}
        for route in router.routes:
            self.routes.append(route.within(self.prefix, dependencies, shared, self._include_in_schema))

    def api_route(
        self, path: str, *dependencies: Any, methods: Sequence[str], **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with these methods. `dependencies`: its permission, and others."""

        def add(endpoint: Endpoint) -> Endpoint:
            self.add_api_route(path, endpoint, methods=methods, dependencies=dependencies, **options)
            return endpoint

        return add

    def get(self, path: str, *dependencies: Any, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with this method."""
        return self.api_route(path, *dependencies, methods=("GET",), **options)

    def post(self, path: str, *dependencies: Any, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with this method."""
        return self.api_route(path, *dependencies, methods=("POST",), **options)

    def put(self, path: str, *dependencies: Any, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with this method."""
        return self.api_route(path, *dependencies, methods=("PUT",), **options)

    def patch(self, path: str, *dependencies: Any, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with this method."""
        return self.api_route(path, *dependencies, methods=("PATCH",), **options)

    def delete(self, path: str, *dependencies: Any, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator for a route with this method."""
        return self.api_route(path, *dependencies, methods=("DELETE",), **options)


@dataclass(frozen=True)
class RouterModule:
    """A module with a `router`, or several of a package, imported when the first request for it arrives.

    Args:
        name: of the module or package, within `runvitals.server`.
        beginnings: of all paths of its routes; those of other routers may begin so too.
        modules: of the package, in the order in which their routes are asked.
        prefix: of the paths of the routes of these modules.
    """

    name: str
    beginnings: tuple[str, ...]
    modules: tuple[str, ...] = ()
    prefix: str = ""

    def load(self) -> Router:
        """Import the modules and return their routes, for all applications the same."""
        package = f"runvitals.server.{self.name}"
        if self.modules:
            return _combined_router(package, self.modules, self.prefix)
        router: Router = importlib.import_module(package).router
        return router


@cache
def _combined_router(package: str, modules: tuple[str, ...], prefix: str) -> Router:
    router = Router(prefix)
    for module in modules:
        router.include_router(importlib.import_module(f"{package}.{module}").router)
    return router


class ImportedRoutes(BaseRoute):
    """Routes that are loaded when the first request has one of the beginnings of their paths."""

    def __init__(self, beginnings: tuple[str, ...], load: Callable[[], Sequence[LazyRoute]]) -> None:
        self._beginnings = beginnings
        self._load = load
        self._loaded = False

    @cached_property
    def routes(self) -> Sequence[LazyRoute]:
        """The routes, which takes up to 0.3 s the first time."""
        routes = self._load()
        self._loaded = True
        return routes

    def routes_of(self, scope: Scope) -> Sequence[LazyRoute]:
        """The routes, if a request may be for one of them; otherwise none, and they are not loaded."""
        begins = scope["type"] == "http" and scope["path"].startswith(self._beginnings)
        return self.routes if begins else ()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for one of the routes, or may be, while they are not loaded."""
        if scope["type"] != "http" or not scope["path"].startswith(self._beginnings):
            return Match.NONE, {}
        if not self._loaded:
            return Match.FULL, {}
        partial: tuple[Match, Scope] = (Match.NONE, {})
        for route in self.routes:
            match, child = route.matches(scope)
            if match == Match.FULL:
                return match, {**child, _FOUND: route}
            if match == Match.PARTIAL and partial[0] == Match.NONE:
                partial = (match, {**child, _FOUND: route})
        return partial

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matches. For the first, the routes are loaded in a thread: others go on."""
        if _FOUND in scope:
            await scope.pop(_FOUND).handle(scope, receive, send)
            return
        await run_in_threadpool(lambda: self.routes)
        await scope["router"](scope, receive, send)  # which asks the routes before these again, and these


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    """The methods of the routes that have the path of a request, which has another method; sorted."""
    methods: set[str] = set()
    for route in routes:
        if isinstance(route, ImportedRoutes):
            methods.update(allowed_methods(route.routes_of(scope), scope))
        elif isinstance(route, (LazyRoute, PlainRoute)) and route.matches(scope)[0] == Match.PARTIAL:
            methods |= route.methods
    return sorted(methods)


def lazy_routes(routes: Iterable[BaseRoute]) -> Iterator[LazyRoute]:
    """All routes of routers, loaded if they were not."""
    for route in routes:
        if isinstance(route, ImportedRoutes):
            yield from route.routes
        elif isinstance(route, LazyRoute):
            yield route


def wrong_method(request: Request) -> tuple[str, str] | None:
    """Say what is wrong with a request whose path has routes for other methods only.

    Returns the text, and the methods for the header `Allow`; None if no route has its path.
    """
    methods = allowed_methods(request.app.router.routes, request.scope)
    if not methods:
        return None
    allowed = ", ".join(methods)
    return f"{request.method} {request.url.path[:_MAX_SHOWN]}: only {allowed} is allowed", allowed


def refuse_other_methods(request: Request) -> None:
    """Raise 405 if a route has the path of the request, but another method."""
    wrong = wrong_method(request)
    if wrong is not None:
        text, allowed = wrong
        raise HTTPException(405, text, {"allow": allowed})
