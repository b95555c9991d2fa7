"""Lists in pages: `?limit=&after=`, answered as `{"<plural>": […], "total": n, "next": cursor or null}`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Query

from runvitals.server.http.immediate import immediate

T = TypeVar("T")
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which part of a list is requested. `after`: `next` of the previous page."""

    limit: int
    after: str | None

    @property
    def after_id(self) -> int:
        """The cursor of a list in the order of ids; 0 for the first page.

        Raises:
            HTTPException: 422 if it is not the `next` of such a list.
        """
        if self.after is None:
            return 0
        if not (self.after.isascii() and self.after.isdigit() and len(self.after) < 19):
            raise HTTPException(422, f"after={self.after[:60]!r}: expected `next` of the previous page")
        return int(self.after)


@immediate
def page_request(
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    after: Annotated[str | None, Query(description="`next` of the previous page.", max_length=200)] = None,
) -> PageRequest:
    """The page of a list that is requested."""
    return PageRequest(limit, after)


ThePage = Annotated[PageRequest, Depends(page_request)]


def part_of(
    rows: Sequence[T], key: Callable[[T], str | int], page: PageRequest
) -> tuple[Sequence[T], str | None]:
    """The rows of the requested page of a list that is in memory, and the cursor of the next one.

    Args:
        rows: in ascending order of `key`, which no two have in common.
    """
    first = 0
    if page.after is not None:
        numbers = bool(rows) and isinstance(key(rows[0]), int)
        cursor: Any = page.after_id if numbers else page.after
        first = bisect_right(rows, cursor, key=key)
    part = rows[first : first + page.limit]
    more = first + len(part) < len(rows)
    return part, str(key(part[-1])) if more else None


def page_of(
    plural: str,
    rows: Sequence[T],
    key: Callable[[T], str | int],
    page: PageRequest,
    to_json: Callable[[T], Any] = lambda row: row,
) -> dict[str, Any]:
    """The requested page of a list that is in memory.

    Args:
        rows: in ascending order of `key`, which no two have in common.
        to_json: the JSON of a row, or what the model of the response makes it of.
    """
    part, cursor = part_of(rows, key, page)
    return {plural: [to_json(row) for row in part], "total": len(rows), "next": cursor}


def sorted_page(
    plural: str,
    rows: Iterable[T],
    key: Callable[[T], str],
    page: PageRequest,
    to_json: Callable[[T], Any] = lambda row: row,
    descending: bool = False,
) -> dict[str, Any]:
    """The requested page of a list that is in memory, in the order that the request chose.

    Args:
        key: what the rows are sorted by, which no two have in common. It is the cursor.
    """
    ordered = sorted(rows, key=key, reverse=descending)
    first, after = 0, page.after
    if after is not None:
        first = sum(key(row) >= after if descending else key(row) <= after for row in ordered)
    part = ordered[first : first + page.limit]
    more = first + len(part) < len(ordered)
    cursor = key(part[-1]) if part and more else None
    return {plural: [to_json(row) for row in part], "total": len(ordered), "next": cursor}


def page_in_order(plural: str, rows: Sequence[Any], page: PageRequest) -> dict[str, Any]:
    """The requested page of a short list in an order of its own.

    Its cursor is a position: if a row is removed meanwhile, the next one may be skipped.
    """
    first = page.after_id
    end = first + page.limit
    return {
        plural: list(rows[first:end]),
        "total": len(rows),
        "next": str(end) if end < len(rows) else None,
    }


def numbered_page(
    plural: str, rows: Sequence[T], page: PageRequest, to_json: Callable[[T], dict[str, Any]]
) -> dict[str, Any]:
    """The requested page of a list that is in memory and whose rows have no short key.

    Cursors are positions, so a row that is inserted meanwhile moves others to the next page.
    """
    part = rows[page.after_id : page.after_id + page.limit]
    return stored_page(plural, [to_json(row) for row in part], len(rows), page)


def stored_page(plural: str, rows: Sequence[Any], total: int, page: PageRequest) -> dict[str, Any]:
    """The requested page of a list whose rows a store has read by their positions, which are its cursors."""
    end = page.after_id + len(rows)
    return {plural: rows, "total": total, "next": str(end) if rows and end < total else None}
