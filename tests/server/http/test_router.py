"""Routes that are analysed, and modules that are imported, when the first request needs them."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI

from runvitals.server.account_routes import ACCOUNT_ROUTERS
from runvitals.server.doors.routers import DOOR_ROUTERS
from runvitals.server.http.router import ImportedRoutes, LazyRoute, Router, RouterModule

threads: list[int] = []


def _app(*groups: Callable[[], Router]) -> FastAPI:
    app = FastAPI()
    for load in groups:
        app.router.routes.append(ImportedRoutes(("/api/",), lambda load=load: load().routes))
    return app


def _request(app: FastAPI, path: str, method: str = "GET") -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return await client.request(method, path)

    return asyncio.run(send())


def _numbers() -> Router:
    threads.append(threading.get_ident())
    router = Router(prefix="/api")

    @router.get("/numbers/{number}")
    async def number(number: int, times: int = 1) -> dict[str, int]:
        threads.append(threading.get_ident())
        return {"number": number * times}

    return router


def _words() -> Router:
    router = Router(prefix="/api")

    @router.get("/words")
    async def words() -> list[str]:
        return ["one"]

    @router.post("/numbers/{number}")
    async def change(number: int) -> str:
        return "changed"

    return router


def test_routes_are_found_in_the_group_that_has_them() -> None:
    app = _app(_numbers, _words)
    assert _request(app, "/api/words").json() == ["one"]
    assert _request(app, "/api/numbers/3?times=2").json() == {"number": 6}
    assert _request(app, "/api/numbers/3", "POST").json() == "changed"
    assert _request(app, "/api/numbers/three").status_code == 422
    assert _request(app, "/api/letters").status_code == 404
    assert _request(app, "/api/numbers/3", "PUT").status_code == 405
    assert _request(app, "/elsewhere").status_code == 404


def test_groups_are_loaded_once_and_in_a_thread_so_that_other_requests_go_on() -> None:
    threads.clear()
    app = _app(_numbers)
    assert [_request(app, f"/api/numbers/{number}").json()["number"] for number in (1, 2)] == [1, 2]
    loaded, first, second = threads
    assert loaded != first == second


def test_a_route_is_analysed_when_its_first_request_arrives() -> None:
    router = _words()
    words, change = router.routes
    app = FastAPI()
    app.router.routes.extend(router.routes)
    assert not _is_analysed(words)
    assert _request(app, "/api/words").json() == ["one"]
    assert _is_analysed(words)
    assert not _is_analysed(change)


def _is_analysed(route: LazyRoute) -> bool:
    return "api_route" in vars(route)


def test_included_routes_get_prefix_dependencies_and_responses_of_both_routers() -> None:
    inner, outer = Router(prefix="/b", responses={404: {"description": "inner"}}), Router(prefix="/a")

    @inner.get("/c", "own", responses={409: {"description": "own"}})
    async def nothing() -> None: ...

    shared = {404: {"description": "outer"}, 503: {"description": "outer"}}
    outer.include_router(inner, dependencies=["shared"], responses=shared)
    (route,) = outer.routes
    assert route.path == "/a/b/c"
    assert route.dependencies == ("shared", "own")
    described = {status: response["description"] for status, response in route.responses.items()}
    assert described == {404: "inner", 503: "outer", 409: "own"}


@pytest.mark.parametrize("module", [*ACCOUNT_ROUTERS, *DOOR_ROUTERS], ids=lambda module: module.name)
def test_all_routes_of_a_module_begin_as_it_is_said(module: RouterModule) -> None:
    routes = module.load().routes
    assert routes
    assert [route.path for route in routes if not route.path.startswith(module.beginnings)] == []
    unused = [begin for begin in module.beginnings if not any(r.path.startswith(begin) for r in routes)]
    assert unused == []
    assert f"runvitals.server.{module.name}" in sys.modules
