"""Errors of routes whose response has more than a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.exceptions import HTTPException

from runvitals.server.http.request_errors import HttpRejection


class DetailedError(HTTPException):
    """An error with further members in its JSON: `{"error": text, **more}`."""

    def __init__(
        self, status: int, text: str, more: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, text, dict(headers) if headers else None)
        self.more = dict(more)


class InvalidFields(DetailedError):
    """422: what is wrong with each field of a form, by its name: `{"links[2].url": "expected https"}`."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(422, "; ".join(fields.values()), {"fields": dict(fields)})


def too_many(text: str, wait_s: float) -> HTTPException:
    """429, with the seconds to wait."""
    return HTTPException(429, text, {"retry-after": str(max(1, round(wait_s)))})


def http_error(error: HttpRejection) -> HTTPException:
    """A rejection as routes raise it."""
    headers = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
    return HTTPException(error.status, error.text, headers)


def field_name(path: Sequence[str | int]) -> str:
    """The name of a field within a body.

    Example:
        >>> field_name(("links", 2, "url"))
        'links[2].url'
    """
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


@contextmanager
def answering(
    status: int, kind: type[Exception] | tuple[type[Exception], ...] = ValueError
) -> Iterator[None]:
    """Answer an error of a kind, or of one of several, with a status and the text of the error.

    Raises:
        HTTPException: such an error was raised.
    """
    try:
        yield
    except kind as error:
        raise HTTPException(status, str(error)) from None


@contextmanager
def checking(field: str) -> Iterator[None]:
    """Answer a ValueError as 422 of a field. Subclasses, which are conflicts with the present state, stay.

    Raises:
        InvalidFields: a ValueError was raised.
    """
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise InvalidFields({field: str(error)}) from None
