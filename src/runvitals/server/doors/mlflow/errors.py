"""MLflow's kind of errors: `{"error_code", "message"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from runvitals.base.deadline import TooSlow
from runvitals.model.errors import AmbiguousName, UnknownProject, UnknownRun
from runvitals.server.error_table import meaning_of
from runvitals.server.http.error_forms import mlflow_response
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.workers import Busy
from runvitals.store.errors import InUse, NotAllowed, NotFound, ProtectedAlias

INVALID_PARAMETER_VALUE: Final = "INVALID_PARAMETER_VALUE"
RESOURCE_ALREADY_EXISTS: Final = "RESOURCE_ALREADY_EXISTS"
RESOURCE_DOES_NOT_EXIST: Final = "RESOURCE_DOES_NOT_EXIST"
ENDPOINT_NOT_FOUND: Final = "ENDPOINT_NOT_FOUND"
NOT_IMPLEMENTED: Final = "NOT_IMPLEMENTED"
PERMISSION_DENIED: Final = "PERMISSION_DENIED"

_STATUSES: Final[Mapping[str, int]] = {
    INVALID_PARAMETER_VALUE: 400,
    RESOURCE_ALREADY_EXISTS: 400,
    "BAD_REQUEST": 400,
    "UNAUTHENTICATED": 401,
    PERMISSION_DENIED: 403,
    RESOURCE_DOES_NOT_EXIST: 404,
    ENDPOINT_NOT_FOUND: 404,
    "RESOURCE_CONFLICT": 409,
    "REQUEST_LIMIT_EXCEEDED": 429,
    NOT_IMPLEMENTED: 501,
    "TEMPORARILY_UNAVAILABLE": 503,
}
REFUSALS: Final = (
    HTTPException,
    HttpRejection,
    RequestValidationError,
    AmbiguousName,
    UnknownRun,
    UnknownProject,
    NotAllowed,
    NotFound,
    ProtectedAlias,
    InUse,
    TooSlow,
    Busy,
)
"""Errors besides `MlflowError` that routes raise to refuse a request."""


class MlflowError(Exception):
    """A request that fails with one of MLflow's error codes.

    Example:
        >>> MlflowError(RESOURCE_DOES_NOT_EXIST, "Run with id=1 not found").status
        404
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = _STATUSES[code]


def invalid(message: str) -> MlflowError:
    """400: a parameter has a wrong value."""
    return MlflowError(INVALID_PARAMETER_VALUE, message)


def unknown_run(run_id: str) -> MlflowError:
    """404: there is no such run, or the requester may not know of it."""
    return MlflowError(RESOURCE_DOES_NOT_EXIST, f"Run with id={run_id[:100]} not found")


def unknown_experiment(experiment_id: str) -> MlflowError:
    """404: there is no such experiment, or the requester may not know of it."""
    return MlflowError(RESOURCE_DOES_NOT_EXIST, f"No Experiment with id={experiment_id[:100]} exists")


def error_response(error: Exception) -> Response:
    """Return the response to a request that raised `MlflowError` or one of `REFUSALS`."""
    if isinstance(error, MlflowError):
        return mlflow_response(error.status, error.code, error.message, {})
    if isinstance(error, TooSlow):
        return mlflow_response(503, "", str(error) or "the request takes too long: search fewer runs", {})
    if isinstance(error, RequestValidationError):
        return mlflow_response(400, INVALID_PARAMETER_VALUE, "invalid request", {})
    meaning = meaning_of(error)
    return mlflow_response(meaning.status, "", meaning.text, meaning.headers)
