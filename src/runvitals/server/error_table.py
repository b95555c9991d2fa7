"""The status, text and time to retry of each error, whatever form the response has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException

from runvitals.base.deadline import ClientLeft, TooSlow
from runvitals.model.errors import AmbiguousName, CannotWrite, UnknownProject, UnknownRun
from runvitals.server.files.disk_space import NO_SPACE
from runvitals.server.http.request_body import ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.workers import DEADLINE_S, Busy
from runvitals.store.errors import (
    DeletedMeanwhile,
    InUse,
    LastAdministrator,
    LimitReached,
    LinkRefused,
    MetadataStoreUnavailable,
    NameTaken,
    NoLongerValid,
    NotAllowed,
    NotAnAdministrator,
    NotFound,
    OtherStorage,
    ProtectedAlias,
    StoreError,
)

FAILED: Final = 500
CLIENT_LEFT: Final = 499
"""Nobody reads the response. It is logged as such."""
STATUSES: Final[Mapping[type[Exception], int]] = {
    UnknownRun: 404,
    UnknownProject: 404,
    NotFound: 404,
    NotAllowed: 404,
    DeletedMeanwhile: 404,
    AmbiguousName: 409,
    CannotWrite: 403,
    ProtectedAlias: 403,
    LinkRefused: 403,
    LastAdministrator: 409,
    LimitReached: 409,
    InUse: 409,
    NameTaken: 409,
    NotAnAdministrator: 409,
    OtherStorage: 409,
    NoLongerValid: 410,
    ClientDisconnected: CLIENT_LEFT,
    ClientLeft: CLIENT_LEFT,
    TooSlow: 503,
    Busy: 503,
    StoreError: 503,
    OSError: 503,
    MetadataStoreUnavailable: 503,  # its disk is full or its database cannot be reached: that may pass
}
"""The status of an error and of its subclasses. `HTTPException` and `HttpRejection` have one of their own."""
_RETRY_AFTER_S: Final[Mapping[type[Exception], int]] = {
    Busy: 1,
    StoreError: 5,
    OSError: 5,
    MetadataStoreUnavailable: 5,
}


class ErrorMeaning(NamedTuple):
    """The status, text and headers of an error's response."""

    status: int
    text: str
    headers: dict[str, str]


def meaning_of(error: Exception) -> ErrorMeaning:
    """Return the status and text of an error; 500 for one that the table does not name.

    Example:
        >>> meaning_of(NotFound("there is no user 'ada'"))
        ErrorMeaning(status=404, text="there is no user 'ada'", headers={})
    """
    if isinstance(error, HTTPException):
        return ErrorMeaning(error.status_code, str(error.detail), dict(error.headers or {}))
    if isinstance(error, HttpRejection):
        return ErrorMeaning(error.status, error.text, _retry_after(error.retry_after_s))
    kind = next((parent for parent in type(error).__mro__ if parent in STATUSES), None)
    if kind is None:
        return ErrorMeaning(FAILED, "the server failed to answer this request: see its log", {})
    return ErrorMeaning(STATUSES[kind], _text(error), _retry_after(_RETRY_AFTER_S.get(kind)))


def _retry_after(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"retry-after": str(seconds)}


def _text(error: Exception) -> str:
    if isinstance(error, MetadataStoreUnavailable):  # its text may hold the address of the database
        return "the metadata store is unavailable: see the server's log"
    if isinstance(error, DeletedMeanwhile):  # its text is the database's
        return "what this request is about was deleted a moment ago"
    if isinstance(error, TooSlow):
        return (
            f"the request took longer than {DEADLINE_S:g} s and was cancelled: request fewer keys, fewer "
            "runs or a shorter time"
        )
    if isinstance(error, StoreError):  # its text names the folder, or the engine and its address
        return f"the samples cannot be read: {error}"
    if isinstance(error, OSError):
        done = "written" if error.errno in NO_SPACE else "read"
        return f"the data folder cannot be {done}: {error}"
    return str(error)
