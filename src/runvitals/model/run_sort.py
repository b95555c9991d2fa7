"""The sort order of a list of runs, and the cursor at which a page of it ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runvitals.model.filter import is_field

SORTED_COLUMNS = (
    "id",
    "name",
    "group",
    "job_type",
    "state",
    "project",
    "entity",
    "author",
    "started_ms",
    "last_ms",
    "duration_ms",
)


@dataclass(frozen=True, slots=True)
class RunSort:
    """The sort order of a list: by one of `SORTED_COLUMNS`, or by `config.…` or `summary.…`.

    In both directions, numbers come before texts, and runs without a value last.

    Raises:
        ValueError: unknown column or field.
    """

    by: str = "started_ms"
    descending: bool = True

    def __post_init__(self) -> None:
        if self.by not in SORTED_COLUMNS and not is_field(self.by):
            raise ValueError(
                f"cannot sort runs by {self.by!r}; expected one of "
                f"{', '.join(SORTED_COLUMNS)}, config.… or summary.…"
            )


def encode_cursor(sort: RunSort, position: Sequence[object]) -> str:
    """The end of a page, for the `after` of the next one.

    Args:
        position: JSON values that identify the last run in the list.
    """
    text = json.dumps([sort.by, sort.descending, *position])
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def decode_cursor(sort: RunSort, after: str, length: int) -> list[Any]:
    """The position in a cursor; the types of its values are not checked.

    Args:
        length: of the position.

    Raises:
        ValueError: not a cursor, or one of another sort order.

    Example:
        >>> decode_cursor(RunSort(), encode_cursor(RunSort(), [1_700_000_000_000, "abc"]), 2)
        [1700000000000, 'abc']
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
    except (ValueError, RecursionError):  # not base64, not JSON, or nested too deeply
        raise invalid_cursor(after) from None
    if not isinstance(values, list) or len(values) != 2 + length:
        raise invalid_cursor(after)
    by, descending, *position = values
    if [by, descending] != [sort.by, sort.descending]:
        raise ValueError(
            f"after={after!r} belongs to a list sorted by {by}; use the same order for every page"
        )
    return position


def invalid_cursor(after: str) -> ValueError:
    return ValueError(f"invalid after={after!r}; expected the `next` of a previous page")
