"""The form in which a response says what is wrong: that of the system whose clients send to the path.

Doors write most errors themselves. This is for those that come before or after a door: of keys, of bodies,
of a server that has too much to do or ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

MLFLOW_PATHS: Final = "/(mlflow/)?(ajax-)?api/[23].0/mlflow/.*"
_MLFLOW: Final = re.compile(f"{MLFLOW_PATHS}|/(mlflow/)?(ajax-)?api/[23].0/mlflow-artifacts/.*")
_PLAIN: Final = ("/api/v1/write", "/prometheus/api/v1/write", "/prometheus/federate")
_QUERIES: Final = "/prometheus/api/"
_GRAPHQL: Final = "/graphql"
MLFLOW_CODES: Final[Mapping[int, str]] = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    405: "ENDPOINT_NOT_FOUND",
    408: "TEMPORARILY_UNAVAILABLE",
    409: "RESOURCE_CONFLICT",
    413: "INVALID_PARAMETER_VALUE",
    422: "INVALID_PARAMETER_VALUE",
    428: "PERMISSION_DENIED",
    429: "REQUEST_LIMIT_EXCEEDED",
    503: "TEMPORARILY_UNAVAILABLE",
}
"""MLflow's error codes, by status."""
_QUERY_ERRORS: Final[Mapping[int, str]] = {
    401: "unauthorized",
    403: "unauthorized",
    404: "not_found",
    422: "execution",
    429: "unavailable",
    500: "internal",
    503: "unavailable",
}
"""Prometheus' kinds of errors, by status; the others are `bad_data`."""


def error_response(
    path: str,
    status: int,
    text: str,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """Return the response to a request that failed.

    Args:
        path: of the request.
        more: further members of our own form.

    Example:
        >>> error_response("/graphql", 401, "this key is not valid").body
        b'{"data":null,"errors":[{"message":"this key is not valid"}]}'
    """
    sent = dict(headers or {})
    if _MLFLOW.fullmatch(path):
        return mlflow_response(status, "", text, sent)
    if path == _GRAPHQL:
        return JSONResponse({"data": None, "errors": [{"message": text}]}, status, sent)
    if path in _PLAIN:
        return PlainTextResponse(text + "\n", status, sent)
    if path.startswith(_QUERIES):
        kind = _QUERY_ERRORS.get(status, "bad_data")
        return JSONResponse({"status": "error", "errorType": kind, "error": text}, status, sent)
    return JSONResponse({"error": text, **(more or {})}, status, sent)


def mlflow_response(status: int, code: str, text: str, headers: Mapping[str, str]) -> Response:
    """Return an error as MLflow's clients read it. `code`: empty: that of the status."""
    body = {"error_code": code or MLFLOW_CODES.get(status, "INTERNAL_ERROR"), "message": text}
    # 413 and 422 are not in MLflow's table of statuses; 400 has the same meaning for its clients.
    return JSONResponse(body, 400 if status in (413, 422) else status, dict(headers))
