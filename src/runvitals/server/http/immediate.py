"""Dependencies of routes that wait for nothing, and are therefore called without a thread.

FastAPI calls every dependency that is no `async def` in a thread of its own: for one that only looks up an
attribute, that takes 50 times as long as the call, and most routes have several.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:  # a server starts without FastAPI
    from fastapi.dependencies.models import Dependant

_MARK: Final = "_is_immediate"
Function = TypeVar("Function", bound=Callable[..., Any])


def immediate(function: Function) -> Function:
    """Mark a dependency that reads no file and no database, and computes nothing that takes long.

    Example:
        >>> @immediate
        ... def access_of(request: Request) -> AccessControl: ...
    """
    setattr(function, _MARK, True)
    return function


def call_without_threads(dependant: Dependant) -> None:
    """Let a route call its immediate dependencies in the event loop."""
    for dependency in dependant.dependencies:
        if getattr(dependency.call, _MARK, False):
            assert dependency.call is not None
            dependency.call = _in_event_loop(dependency.call)
        call_without_threads(dependency)


@cache
def _in_event_loop(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(**arguments: Any) -> Any:
        return function(**arguments)

    return call
