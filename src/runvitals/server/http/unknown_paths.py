"""Requests that no route of an API answers: without a last route for them, the page would."""

from __future__ import annotations

from typing import Final

from fastapi import HTTPException, Request

from runvitals.server.http.router import allowed_methods

ANY_METHOD: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_MAX_SHOWN: Final = 200


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
    """Refuse a method that no route of this path has.

    Raises:
        HTTPException: 405 if a route has the path of the request, but another method.
    """
    wrong = wrong_method(request)
    if wrong is not None:
        text, allowed = wrong
        raise HTTPException(405, text, {"allow": allowed})
