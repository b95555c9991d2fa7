"""Routes without FastAPI, which takes 0.15 s and 17 MB to load: see `late_application`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


class PlainRoute(BaseRoute):
    """A route that reads something, with a path without parameters.

    Args:
        permission: what it needs; raises an error if the requester lacks it.
    """

    methods = frozenset(("GET", "HEAD"))
    include_in_schema = False

    def __init__(
        self,
        path: str,
        permission: Callable[[Request], Awaitable[None]],
        endpoint: Callable[[Request], Awaitable[Response]],
    ) -> None:
        self.path = path
        self.permission = permission
        self._endpoint = endpoint

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route, as Starlette's routes answer it."""
        if scope["type"] != "http" or scope["path"] != self.path:
            return Match.NONE, {}
        return Match.FULL if scope["method"] in self.methods else Match.PARTIAL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matches."""
        request = Request(scope, receive, send)
        await self.permission(request)
        response = await self._endpoint(request)
        await response(scope, receive, send)
