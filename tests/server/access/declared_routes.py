"""The routes of the application, with what each declares to need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from runvitals.server.access.actions import FILTERED
from runvitals.server.access.permission import RoutePermission
from runvitals.server.http.plain_routes import PlainRoute
from runvitals.server.http.router import lazy_routes


@dataclass(frozen=True)
class DeclaredRoute:
    """A method of a route. `permissions`: all that it declares; a correct route declares one."""

    method: str
    path: str
    permissions: tuple[str, ...]

    @property
    def permission(self) -> str:
        return self.permissions[0]

    @property
    def action(self) -> str:
        """The action, also of a list that is filtered by it."""
        return self.permission.removeprefix(FILTERED)

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(part.partition(":")[0] for part in _braces(self.path))

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def declared_routes(routes: Iterable[Any]) -> Iterator[DeclaredRoute]:
    """All methods of all routes."""
    for route in routes:
        if isinstance(route, PlainRoute):
            assert isinstance(route.permission, RoutePermission)
            yield DeclaredRoute("GET", route.path, (route.permission.permission,))
    for route in lazy_routes(routes):
        calls = (depends.dependency for depends in route.dependencies)
        permissions = tuple(call.permission for call in calls if isinstance(call, RoutePermission))
        for method in sorted(route.methods - {"HEAD"}):
            yield DeclaredRoute(method, route.path, permissions)


def _braces(path: str) -> Iterator[str]:
    for part in path.split("{")[1:]:
        yield part.partition("}")[0]
