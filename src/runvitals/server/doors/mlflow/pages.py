"""Pages of lists: tokens that say how much of a list a client has."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.requests import SentMessage

T = TypeVar("T")
_OF_PAGE: Final = ("page_token", "max_results")
_DIGITS: Final = 12


def query_of(sent: SentMessage) -> str:
    """Return what identifies a query: a token of a page belongs to the one that it was made for."""
    query = {name: value for name, value in sent.values.items() if name not in _OF_PAGE and value}
    text = json.dumps(query, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def token(position: object, query: str) -> str:
    """Return a token for a JSON value."""
    return base64.urlsafe_b64encode(json.dumps([position, query]).encode()).decode("ascii")


def position(page_token: str | None, query: str) -> Any:
    """Return the value in a token; None if there is no token.

    Raises:
        MlflowError: it is not one of ours, or of another query.

    Example:
        >>> position(token([1, "a"], "runs"), "runs")
        [1, 'a']
    """
    if not page_token:
        return None
    try:
        value = json.loads(base64.urlsafe_b64decode(page_token[:4000].encode("ascii")))
    except (ValueError, RecursionError):
        raise invalid("Invalid page token, could not base64-decode") from None
    if not isinstance(value, list) or len(value) != 2 or value[1] != query:
        raise invalid("Invalid page token: it belongs to another search")
    return value[0]


def offset(page_token: str | None, query: str) -> int:
    """Return the place in a list at which the next page begins."""
    value = position(page_token, query)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise invalid("Invalid page token, expected the next_page_token of a previous page")
    return value


def page_of(rows: Sequence[T], sent: SentMessage, most: int) -> tuple[list[T], str | None]:
    """Return a page of a list, and the token of the next one."""
    query = query_of(sent)
    first = offset(sent.text("page_token"), query)
    page = list(rows[first : first + most])
    return page, token(first + most, query) if len(rows) > first + most else None


def max_results(value: int | None, default: int, most: int) -> int:
    """Return how many results a page may have.

    Raises:
        MlflowError: not a number from 1 to `most`.
    """
    if value is None:
        return default
    if value < 1:
        raise invalid(
            f"Invalid value {value} for parameter 'max_results' supplied. It must be a positive integer"
        )
    if value > most:
        raise invalid(
            f"Invalid value {value} for parameter 'max_results' supplied. It must be at most {most}"
        )
    return value
