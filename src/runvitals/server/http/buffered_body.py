"""Request bodies of all routes except ingest: read completely, with limits on size and time."""

from __future__ import annotations

import re

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.base import deadline
from runvitals.base.numbers import parse_integer
from runvitals.server.http.admission import Admission
from runvitals.server.http.body_limits import MIB, Limits
from runvitals.server.http.error_forms import MLFLOW_PATHS, error_response
from runvitals.server.http.request_body import BodyReader, ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection

BODY_BYTES = MIB
"""The longest body that routes accept, except ingest and those of `_LARGER`; the longest field: notes."""
PICTURE_BYTES = 5_000_000
REPORT_BYTES = 8 * MIB
"""Longer than a document of a report may be, so that the error says what is too much of it."""
REPORT_FILE_BYTES = 10_000_000
READ_BY_ROUTE = (
    "/graphql",
    "/files/",
    "/wandb/",
    "/api/v1/write",
    "/prometheus/api/v1/write",
    "/api/2.0/mlflow-artifacts/artifacts/",
    "/api/2.0/mlflow/upload-artifact",
    "/mlflow/signed/",
)
"""Beginnings of the paths of doors that read their larger bodies themselves, by `server.doors.bodies`."""
_PIECE_OF_FILE = re.compile("/api/v1/runs/[^/]+/files/[^/]+")
"""Written as it arrives (`PUT`), so that one request may have much of a file."""
HAS_LEFT = "runvitals.has_left"
"""The key of a request's scope under which a connection says whether its client has left."""
MLFLOW_BYTES = 16 * MIB
"""Longer than a batch of MLflow: 100 parameters of 6,000 and 100 tags of 8,000 characters, escaped."""
_LARGER = (
    ("POST", re.compile(MLFLOW_PATHS), MLFLOW_BYTES),
    ("PUT", re.compile("/api/v1/.*/picture"), PICTURE_BYTES),
    ("PATCH", re.compile("/api/v1/reports/[^/]+"), REPORT_BYTES),
    ("POST", re.compile("/api/v1/entities/[^/]+/projects/.+/reports"), REPORT_BYTES),
    ("POST", re.compile("/api/v1/reports/[^/]+/files"), REPORT_FILE_BYTES),
)
"""Routes that accept longer bodies: method, path and bytes."""
_MAX_LENGTH = 1 << 62
_LIMITS = Limits(requests_in_flight=256, bytes_in_flight=64 * MIB)


class BufferedBodies:
    """Middleware that reads the body of each request before the application runs.

    The application does not have to handle large bodies and slow clients. Work for clients that have left
    ends (`deadline`).

    A body that is too long is rejected with 413, without reading it if its length is declared; one that takes
    too long to arrive with 408.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._body_reader = BodyReader(BODY_BYTES, _LIMITS.body_s)
        self._larger_readers = [
            (method, path, BodyReader(max(BODY_BYTES, size), _LIMITS.body_s))
            for method, path, size in _LARGER
        ]
        self._admission = Admission(_LIMITS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with its body read beforehand."""
        with deadline.while_connected(scope.get(HAS_LEFT)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = _declared_length(scope) if scope["type"] == "http" else 0
        if length == 0 or reads_own_body(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            in_flight = self._admission.admit()
            try:
                reader = self._reader_of(scope)
                if length is not None:
                    reader.check_length(length)
                    in_flight.reserve(length)
                body = await reader.read(receive, in_flight.reserve)
                await self._app(scope, replayed(body, receive), send)
            finally:
                in_flight.release()
        except HttpRejection as error:
            await rejection_response(error, scope["path"])(scope, receive, send)
        except ClientDisconnected:
            pass

    def _reader_of(self, scope: Scope) -> BodyReader:
        for method, path, reader in self._larger_readers:
            if scope["method"] == method and path.fullmatch(scope["path"]):
                return reader
        return self._body_reader


def reads_own_body(method: str, path: str) -> bool:
    """Return whether a route reads its body itself, as it arrives."""
    return path.startswith(READ_BY_ROUTE) or (method == "PUT" and _PIECE_OF_FILE.fullmatch(path) is not None)


def _declared_length(scope: Scope) -> int | None:
    """The length of a request's body; None if the request does not declare it."""
    length: int | None = 0
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = parse_integer(value, _MAX_LENGTH)
        elif name == b"transfer-encoding":
            return None
    return length


def replayed(body: bytes, receive: Receive) -> Receive:
    """An ASGI `receive` that returns the body, and then what arrives on the connection."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return replay


def rejection_response(error: HttpRejection, path: str) -> Response:
    """Return the response to a rejected request. After a timeout the connection is closed."""
    headers = {"connection": "close"} if error.status == 408 else {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    return error_response(path, error.status, error.text, headers)
