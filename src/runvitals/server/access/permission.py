"""What a route needs: each route declares one permission.

The local server (`runvitals ui`) has no accounts: there the declaration costs nothing and allows everything.
It therefore names actions by their text, and imports nothing of accounts.

Example:
    >>> @router.patch("/runs/{run}", dependencies=[needs("run:update")])
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, Protocol

from fastapi import Depends, Request

PUBLIC: Final = "public"
"""A route that anyone may call: it shows nothing of anyone, or checks a secret of its own."""
FILTERED: Final = "filtered "
"""Prefix of the action by which a route filters what it lists."""


class RouteCheck(Protocol):
    """Checks a request for a route: `app.state.access` of a shared server."""

    def check_route(self, request: Request, permission: str) -> Awaitable[None]:
        """Raise HTTPException 401, 403, 404 or 428 if the requester may not do this action on the resource
        that the path names."""


class RoutePermission:
    """The permission that a route needs, as a dependency.

    Args:
        permission: an action such as `run:update`; `public`; or `filtered ` and an action for a list of which
            everyone sees the part that they may read.
    """

    def __init__(self, permission: str) -> None:
        self.permission = permission

    async def __call__(self, request: Request) -> None:
        access: RouteCheck | None = getattr(request.app.state, "access", None)
        if access is not None:
            await access.check_route(request, self.permission)


def needs(permission: str) -> Any:
    """A dependency for `dependencies=[…]` of a route."""
    return Depends(RoutePermission(permission))
