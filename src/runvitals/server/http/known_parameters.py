"""Rejects query parameters that a route does not have.

A misspelled filter would otherwise be ignored, and the answer would be about other runs than the client
means.
"""

from __future__ import annotations

import re

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from runvitals.server.http.errors import InvalidFields

_MAX_SHOWN_CHARACTERS = 100
_CALLBACK = re.compile(r"/api/v1/auth/[^/]+/callback")
"""Providers of sign-ins add what they like, such as `session_state`, when they send browsers back."""


async def check_known_parameters(request: Request) -> None:
    """Refuse query parameters that the route does not have.

    Raises:
        InvalidFields: 422 for a query parameter that the route does not have; the text lists those it has.
    """
    path = request.url.path
    if not request.query_params or not path.startswith("/api/v1/") or _CALLBACK.fullmatch(path):
        return  # other routes have callers with parameters of their own
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    names = _query_parameters(route.dependant)
    unknown = next((name for name in request.query_params if name not in names), None)
    if unknown is not None:
        expected = f"expected one of {', '.join(sorted(names))}" if names else "this route has none"
        excerpt = unknown[:_MAX_SHOWN_CHARACTERS]
        raise InvalidFields({excerpt: f"unknown parameter {excerpt!r}; {expected}"})


def _query_parameters(dependant: Dependant) -> set[str]:
    """The names of a function's query parameters, and of those of its dependencies."""
    own = {parameter.alias for parameter in dependant.query_params}
    return own.union(*map(_query_parameters, dependant.dependencies))
