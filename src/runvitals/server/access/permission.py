"""What a route needs: each route declares one permission.

The local server (`runvitals ui`) has no accounts: there the declaration costs nothing and allows everything.
It therefore names actions by their text, and imports nothing of accounts.

Example:
    >>> @router.patch("/runs/{run}", dependencies=[needs("run:update")])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, Protocol

from fastapi import Depends, HTTPException, Request

from runvitals.model.run import Run
from runvitals.server.services import services_of

PUBLIC: Final = "public"
"""A route that anyone may call: it shows nothing of anyone, or checks a secret of its own."""
ACCOUNT: Final = "account"
"""A route about the requester's own account: `account:read` for GET, otherwise `account:update`."""
AUTHENTICATED: Final = "authenticated"
"""A route that needs a key or a session with any rights, or a request from this machine."""
OWN_PASSWORD: Final = "own password"
"""A route that changes the requester's own password: all that a session may call, besides public routes,
while an administrator's password must be changed."""
FILTERED: Final = "filtered "
"""Prefix of the action by which a route filters what it lists."""
NO_ADMINISTRATOR: Final = (
    "this server has no administrator yet: until the link that `runvitals server` printed has created one, "
    "it only takes and shows runs"
)

Mode = Literal["open", "tokens", "accounts"]
"""What requests need: nothing, a token, or an account or key."""


class RouteCheck(Protocol):
    """Checks a request for a route."""

    def mode(self) -> Mode:
        """What requests need at the moment."""

    def check_move(self, request: Request, project: str | None) -> None:
        """Raise HTTPException 401, 403 or 404 if the requester may not move the run of the path to this
        project."""

    def author_change(self, request: Request, name: str | None) -> Callable[[], None]:
        """What makes a user the author of the run of the path; None: nobody. Raises HTTPException 401, 403,
        404 or 422 if it may not be."""

    def record(self, request: Request, action: str, after: Mapping[str, Any]) -> None:
        """Add an event about the run or project of the path to the audit log."""

    def may_of_runs(self, request: Request, runs: Sequence[Run], deleted: bool = False) -> list[list[str]]:
        """What the requester may do with each of some runs, all in the trash or all not."""

    def projects_with_artifacts(self, request: Request, ids: Collection[int], to: str = "read") -> set[int]:
        """Those of some projects, by number, whose artifacts the requester may see, or download. With
        accounts only."""

    def readable_runs(self, request: Request) -> Any:
        """The runs that the requester may read: `.has(place)`; None: all."""

    def bound_cursor(self, request: Request, cursor: str) -> str:
        """A cursor for the requester only."""

    def opened_cursor(self, request: Request, bound: str) -> str:
        """The cursor in one that `bound_cursor` returned.

        Raises:
            ValueError: another requester got it.
        """

    def trash_project(self, request: Request) -> int | None:
        """Move the project of the path to the trash; returns how many runs it has. None: there are no
        accounts, where projects have no trash."""

    def check_route(self, request: Request, permission: str, or_else: str | None = None) -> Awaitable[None]:
        """Raise HTTPException 401, 403, 404 or 428 if the requester may not do this action on the resource
        that the path names, nor the other one; 307 if the resource has moved."""


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
        access = route_check(request)
        if access is not None:
            await access.check_route(request, self.permission, self.or_else)


async def _check_accounts(request: Request) -> None:
    access = route_check(request)
    if access is not None and access.mode() != "accounts":
        raise HTTPException(403, NO_ADMINISTRATOR)


def route_check(request: Request) -> RouteCheck | None:
    """The access control of a shared server; None on the local server."""
    return services_of(request).access


def recording(request: Request, action: str, **after: Any) -> Callable[[], None]:
    """What adds an event about the run or project of the path to the audit log, where there is one."""
    access = route_check(request)
    return _nothing if access is None else partial(access.record, request, action, after)


def _nothing() -> None:
    """There is no audit log."""


def needs(permission: str, or_else: str | None = None) -> Any:
    """A dependency for `dependencies=[…]` of a route."""
    return Depends(RoutePermission(permission, or_else))


def with_accounts() -> Any:
    """A further dependency of a public route about accounts: it answers once there is an administrator."""
    return Depends(_check_accounts)
