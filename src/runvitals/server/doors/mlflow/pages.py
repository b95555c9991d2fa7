"""Pages of lists: tokens that say how much of a list a client has."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from runvitals.server.doors.mlflow.errors import invalid

T = TypeVar("T")


def token(position: object) -> str:
    """Return a token for a JSON value."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode("ascii")


def position(page_token: str | None) -> Any:
    """Return the value in a token; None if there is no token.

    Raises:
        MlflowError: it is not one of ours.

    Example:
        >>> position(token([1, "a"]))
        [1, 'a']
    """
    if not page_token:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(page_token[:4000].encode("ascii")))
    except (ValueError, RecursionError):
        raise invalid("Invalid page token, could not base64-decode") from None


def offset(page_token: str | None) -> int:
    """Return the place in a list at which the next page begins."""
    value = position(page_token)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise invalid("Invalid page token, expected the next_page_token of a previous page")
    return value


def page_of(rows: Sequence[T], page_token: str | None, most: int) -> tuple[list[T], str | None]:
    """Return a page of a list, and the token of the next one."""
    first = offset(page_token)
    page = list(rows[first : first + most])
    return page, token(first + most) if len(rows) > first + most else None


def max_results(value: int | None, default: int, most: int) -> int:
    """Return how many results a page may have.

    Raises:
        MlflowError: not a number from 1 to `most`.
    """
    if value is None:
        return default
    if not 1 <= value <= most:
        raise invalid(
            f"Invalid value {value} for parameter 'max_results' supplied. "
            f"It must be a positive integer at most {most}"
        )
    return value
