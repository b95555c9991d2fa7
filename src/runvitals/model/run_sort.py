"""The sort order of a list of runs, and the cursor at which a page of it ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runvitals.model.filter import is_field
from runvitals.model.run_verdict import finding_field
from runvitals.model.system_statistics import statistic_named

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


MAX_PARTS = 4
"""Columns and fields that a list can be sorted by at once."""


@dataclass(frozen=True, slots=True)
class RunSort:
    """The sort order of a list.

    By one of `SORTED_COLUMNS`, or by a field such as `config.lr`, `summary.loss` or `system.gpu`.

    In both directions, numbers come before texts, and runs without a value last.

    Args:
        then: how runs with the same value are sorted.

    Raises:
        ValueError: unknown column or field.
    """

    by: str = "started_ms"
    descending: bool = True
    then: tuple[RunSort, ...] = ()

    def __post_init__(self) -> None:
        if self.by not in SORTED_COLUMNS and not is_field(self.by):
            raise ValueError(
                f"cannot sort runs by {self.by!r}; expected one of "
                f"{', '.join(SORTED_COLUMNS)}, verdict, lost_hours, config.…, summary.… or system.…"
            )

    @property
    def parts(self) -> tuple[RunSort, ...]:
        """The order by each column or field, the most important first."""
        return (self, *self.then)

    @property
    def text(self) -> str:
        """The order as `parse` reads it."""
        return ",".join(f"{'-' if part.descending else ''}{part.by}" for part in self.parts)

    @classmethod
    def parse(cls, text: str, descending: bool = True) -> RunSort:
        """Parse a sort order as users write it: `-summary.loss,name`; `-` means the highest or newest first.

        Args:
            descending: the direction of a single name without `-`.

        Raises:
            ValueError: unknown column or field, or too many.

        Example:
            >>> [(part.by, part.descending) for part in RunSort.parse("-summary.loss,name").parts]
            [('summary.loss', True), ('name', False)]
        """
        names = text.split(",")
        if len(names) > 1 and not all(_is_sortable(name.removeprefix("-")) for name in names):
            names = [text]  # the name of a field may contain commas
        if len(names) > MAX_PARTS:
            raise ValueError(f"cannot sort runs by {len(names)} columns; expected at most {MAX_PARTS}")
        parts = [
            cls(_name(name.removeprefix("-")), name.startswith("-") or (descending and len(names) == 1))
            for name in names
        ]
        return replace(parts[0], then=tuple(parts[1:]))


def _name(name: str) -> str:
    if name in SORTED_COLUMNS:
        return name
    if name.startswith("cfg."):
        name = f"config.{name[len('cfg.') :]}"
    return finding_field(name) or statistic_named(name) or name


def _is_sortable(name: str) -> bool:
    return name in SORTED_COLUMNS or is_field(_name(name))


def encode_cursor(sort: RunSort, position: Sequence[object]) -> str:
    """Return the `after` of the next page, from JSON values that identify the last run of this one."""
    text = json.dumps([sort.text, *position])
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def decode_cursor(sort: RunSort, after: str, length: int) -> list[Any]:
    """Return the position in a cursor; the types of its values are not checked.

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
    if not isinstance(values, list) or len(values) != 1 + length:
        raise invalid_cursor(after)
    order, *position = values
    if not isinstance(order, str):
        raise invalid_cursor(after)
    if order != sort.text:
        raise ValueError(
            f"after={after!r} belongs to a list sorted by {order}; use the same order for every page"
        )
    return position


def invalid_cursor(after: str) -> ValueError:
    """Make the error for a cursor that no page returned."""
    return ValueError(f"invalid after={after!r}; expected the `next` of a previous page")
