"""Responses to the errors of routes, whichever framework answers them."""

from __future__ import annotations

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from runvitals.server.error_table import CLIENT_LEFT, STATUSES, meaning_of
from runvitals.server.http.error_forms import error_response
from runvitals.server.http.errors import DetailedError
from runvitals.server.http.request_errors import HttpRejection
from runvitals.store.errors import MetadataStoreUnavailable

log = logging.getLogger("runvitals.server")


def add_error_handlers(app: Starlette) -> None:
    """Answer errors of the routes of an application in the form of `error_forms`."""
    app.add_exception_handler(HTTPException, _http_error)
    for kind in (*STATUSES, HttpRejection):
        app.add_exception_handler(kind, _meant)
    app.add_exception_handler(Exception, _internal_error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    if isinstance(error.__cause__, UnicodeDecodeError):  # FastAPI raises it for a body that it cannot decode
        return error_response(path, 400, f"the body is not valid JSON in UTF-8: {error.__cause__}")
    more = error.more if isinstance(error, DetailedError) else {}
    return error_response(path, error.status_code, error.detail, error.headers, more)


async def _meant(request: Request, error: Exception) -> Response:
    """The response to an error that `error_table` names."""
    meaning = meaning_of(error)
    if isinstance(error, MetadataStoreUnavailable):
        log.error("the metadata store is unavailable: %s", error)
    if meaning.status == CLIENT_LEFT:
        return Response(status_code=CLIENT_LEFT)
    return error_response(request.url.path, meaning.status, meaning.text, meaning.headers)


async def _internal_error(request: Request, error: Exception) -> Response:
    """An error of the server itself, which the server logs with its traceback.

    uvicorn closes the connection after it, so that the client must not send another request on it.
    """
    return error_response(request.url.path, 500, meaning_of(error).text, {"connection": "close"})
