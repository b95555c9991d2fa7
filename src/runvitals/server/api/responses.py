"""JSON responses, and the error responses that the OpenAPI document lists."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from runvitals.server.api import models
from runvitals.server.run_library import OpenedRun, RunView

ErrorResponses = dict[int | str, dict[str, Any]]
INVALID_PARAMETER: ErrorResponses = {
    422: {
        "model": models.ErrorAnswer,
        "description": "A parameter is wrong; the text says which, and what is allowed.",
    }
}
UNKNOWN_RUN: ErrorResponses = {404: {"model": models.ErrorAnswer, "description": "There is no such run."}}
RUN_ERRORS: ErrorResponses = {**INVALID_PARAMETER, **UNKNOWN_RUN}
EDIT_ERRORS: ErrorResponses = {
    400: {"model": models.ErrorAnswer, "description": "The body is not valid JSON."},
    403: {"model": models.ErrorAnswer, "description": "Neither JSON nor a token."},
    405: {"model": models.ErrorAnswer, "description": "Not on this machine's own journals."},
    409: {"model": models.ErrorAnswer, "description": "The run has ended; the name is taken."},
}
SHARED_ERRORS: ErrorResponses = {
    status: {"model": models.ErrorAnswer, "description": description}
    for status, description in {
        400: "The body is not valid JSON.",
        401: "No session and no valid key.",
        403: "The requester may not do this.",
        404: "It does not exist, or the requester may not know of it.",
        409: "It conflicts with what there is, such as a name that is taken.",
        410: "The link was used, or has expired.",
        413: "The body is too large.",
        415: "The body has another type than expected.",
        422: "A value is wrong; `fields` says which.",
        428: "The password must be confirmed first.",
        429: "Too many requests; `Retry-After` says when to try again.",
        503: "Something that the server needs cannot be reached.",
    }.items()
}
"""Of the routes that only a shared server has."""
_COMPRESS_FROM_BYTES = 2000
_MAX_HEADER_PROBLEMS = 10


def json_bytes(value: Any) -> bytes:
    """A value as JSON. NaN and infinities, which JSON lacks, become null."""
    return to_json(value, inf_nan_mode="null", fallback=str)


async def json_response(request: Request, body: bytes) -> Response:
    """A JSON text as a response that is not cached. A long one is compressed in a thread: 1 MB takes 8 ms."""
    headers = {"cache-control": "no-store"}
    if len(body) >= _COMPRESS_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body = await run_in_threadpool(gzip.compress, body, 1)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, media_type="application/json", headers=headers)


async def list_response(request: Request, run: OpenedRun, read: Callable[[RunView], bytes]) -> Response:
    """A JSON list. It has no field for data that could not be read, so a header reports it.

    Raises:
        HTTPException: 422 if `read` raises ValueError.
    """
    problems: list[str] = []

    def read_with_problems(view: RunView) -> bytes:
        noted = view.note_problems()
        body = read(view)
        problems.extend(noted)
        return body

    response = await json_response(request, await read_or_422(run, read_with_problems))
    response.headers.update(problem_headers(problems))
    return response


async def read_or_422(run: OpenedRun, read: Callable[[RunView], bytes], quick: bool = False) -> bytes:
    """The result of a reader.

    Raises:
        HTTPException: 422 if it raises ValueError: too much was requested, or a parameter is invalid.
    """
    try:
        return await run.use(read, quick)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


def problem_headers(problems: Collection[str]) -> dict[str, str]:
    """A header that lists data that could not be read, for responses without a field for it."""
    if not problems:
        return {}
    more = len(problems) - _MAX_HEADER_PROBLEMS
    text = "; ".join(islice(problems, _MAX_HEADER_PROBLEMS)) + (f"; and {more} more" if more > 0 else "")
    return {"runvitals-problems": "".join(c if " " <= c <= "~" else "?" for c in text)}
