"""An application that is made at the first request that needs it: a server starts without its modules."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.base.once import Once


class LateApplication:
    """Makes an application in a thread, so that other requests go on meanwhile, and passes requests to it.

    Args:
        app: the application.
        early: answers what it has a route for, before and after.
    """

    def __init__(self, app: Once[ASGIApp], early: Starlette | None = None) -> None:
        self._app = app
        self._early = early

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        early = self._early
        if early is not None and any(route.matches(scope)[0] == Match.FULL for route in early.routes):
            await early(scope, receive, send)
            return
        app = self._app() if self._app.is_made else await run_in_threadpool(self._app)
        await app(scope, receive, send)
