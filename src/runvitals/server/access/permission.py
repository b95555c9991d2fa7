"""The permission of a route: each route declares one.

The local server (`runvitals ui`) has no accounts: there the declaration costs nothing and allows everything.
It therefore names actions by their text, and imports nothing of accounts.

Example:
    >>> @router.patch("/runs/{run}", needs("run:update"))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.server.access.actions import NO_ADMINISTRATOR
from runvitals.server.services import services_of

if TYPE_CHECKING:
    from runvitals.server.access.control import AccessControl


class RoutePermission:
    """The permission that a route needs, as a dependency.

    Args:
        permission: an action such as `run:update`; `public`, `account`, `own password` or `authenticated`; or
            `filtered ` and an action for a list of which everyone sees the part that they may read.
        or_else: an action that suffices too, for a route that checks the rest itself.
    """

    def __init__(self, permission: str, or_else: str | None = None) -> None:
        self.permission = permission
        self.or_else = or_else

    async def __call__(self, request: Request) -> None:
        """Check the permission; does nothing on the local server."""
        access = route_check(request)
        if access is not None:
            await access.check_route(request, self.permission, self.or_else)


async def _check_accounts(request: Request) -> None:
    access = route_check(request)
    if access is not None and access.mode() != "accounts":
        raise HTTPException(403, NO_ADMINISTRATOR)


def route_check(request: Request) -> AccessControl | None:
    """Return the access control of a shared server; None on the local server."""
    return services_of(request).access


def recording(request: Request, action: str, **after: Any) -> Callable[[], None]:
    """Return what adds an event about the run or project of the path to the audit log, where there is one."""
    changes = services_of(request).changes
    return _nothing if changes is None else partial(changes.record, request, action, after)


def _nothing() -> None:
    """There is no audit log."""


def needs(permission: str, or_else: str | None = None) -> Any:
    """Return a dependency of a route: its permission."""
    from fastapi import Depends  # not at the start of a server, which has checks before it has FastAPI

    return Depends(RoutePermission(permission, or_else))


def with_accounts() -> Any:
    """Return a dependency that refuses requests until there is an administrator."""
    from fastapi import Depends

    return Depends(_check_accounts)
