"""JSON responses, and the error responses that the OpenAPI document lists."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from fastapi.responses import Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runvitals.server.http.bodies import ErrorAnswer
from runvitals.server.http.errors import answering
from runvitals.server.library.run_library import OpenedRun, RunView

ErrorResponses = dict[int | str, dict[str, Any]]
INVALID_PARAMETER: ErrorResponses = {
    422: {
        "model": ErrorAnswer,
        "description": "A parameter is wrong; the text says which, and what is allowed.",
    }
}
UNKNOWN_RUN: ErrorResponses = {404: {"model": ErrorAnswer, "description": "There is no such run."}}
RUN_ERRORS: ErrorResponses = {**INVALID_PARAMETER, **UNKNOWN_RUN}
EDIT_ERRORS: ErrorResponses = {
    400: {"model": ErrorAnswer, "description": "The body is not valid JSON."},
    403: {"model": ErrorAnswer, "description": "Neither JSON nor a token."},
    405: {"model": ErrorAnswer, "description": "Runs of this machine are not stopped."},
    409: {"model": ErrorAnswer, "description": "The run has ended; the name is taken."},
}
SHARED_ERRORS: ErrorResponses = {
    # Not `"model": ErrorAnswer`: for each of them and of more than a hundred routes, FastAPI would build a
    # validator that nothing uses, at every start.
    status: {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
    }
    for status, description in {
        307: "The project was renamed or given to another team: repeat the request at `Location`.",
        400: "The body is not valid JSON.",
        401: "Nobody is signed in, or the secret is wrong.",
        403: "It is not allowed.",
        404: "There is no such thing, or it may not be known.",
        409: "It conflicts with the present state: a taken name, the last administrator, a limit.",
        410: "A link that was used, has expired or was revoked.",
        413: "The body is too large.",
        415: "The body has another type than expected.",
        422: "A value is wrong; `fields` says which, and what is allowed.",
        428: "The password must be confirmed first.",
        429: "Too many requests; `Retry-After` says how long to wait.",
        502: "A provider or the mail server cannot be used at the moment.",
        503: "The server cannot do this at the moment.",
    }.items()
}
"""Of the routes that only a shared server has."""
REFUSALS: ErrorResponses = {status: SHARED_ERRORS[status] for status in (401, 403, 409, 429, 503)}
"""What a shared server adds to those of the routes that every server has."""
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
    """Return the result of a reader, or raise 422 for its ValueError: an invalid parameter, or too much."""
    with answering(422):
        return await run.use(read, quick)


def problem_headers(problems: Collection[str]) -> dict[str, str]:
    """A header that lists data that could not be read, for responses without a field for it."""
    if not problems:
        return {}
    more = len(problems) - _MAX_HEADER_PROBLEMS
    text = "; ".join(islice(problems, _MAX_HEADER_PROBLEMS)) + (f"; and {more} more" if more > 0 else "")
    return {"runvitals-problems": "".join(c if " " <= c <= "~" else "?" for c in text)}
