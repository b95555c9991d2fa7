"""Pages of runs sorted by several columns and fields.

The database sorts all matching runs for each page. `run_listing` sorts by one column or field, in the order
of an index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select

from runvitals.model.filter import Filter, is_field
from runvitals.model.names import plain_text
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.store.metadata.database import ids_of
from runvitals.store.metadata.filter_sql import plan
from runvitals.store.metadata.run_columns import TEXTS, sorted_columns
from runvitals.store.metadata.run_rows import RunPage, read_rows
from runvitals.store.metadata.tables import field, run, run_field
from runvitals.store.metadata.text import check_integers

_MISSING = 2  # the kind of runs without a value: sorted after numbers and texts


class _Key(NamedTuple):
    """A column of the order. `is_text`: whether its values are texts."""

    by: ColumnElement[Any]
    descending: bool
    is_text: bool


def sorted_page(
    connection: Connection,
    wanted: Filter,
    sort: RunSort,
    limit: int,
    after: str | None,
    now_ms: int,
    skip: int,
) -> RunPage:
    """Implements `RunTable.page` for an order of several parts."""
    as_of_ms, end = now_ms, None
    keys_of_fields, source = _joined_fields(connection, sort)
    if after is not None:
        as_of_ms, *end = _read_cursor(after, sort)
    columns = sorted_columns(as_of_ms)
    keys: list[_Key] = []
    for part, of_field in zip(sort.parts, keys_of_fields, strict=True):
        keys += of_field or [_Key(columns[part.by], part.descending, part.by in TEXTS)]
    keys.append(_Key(run.c.id, sort.parts[-1].descending, False))
    statement = (
        select(run.c.id, *(key.by.label(f"key_{index}") for index, key in enumerate(keys[:-1])))
        .select_from(source)
        .where(*plan(connection, wanted, as_of_ms, None).where)
        .order_by(*(key.by.desc() if key.descending else key.by for key in keys))
        .limit(limit + 1)
        .offset(skip)
    )
    if end is not None:
        statement = statement.where(_comes_after(keys, end))
    rows = connection.execute(statement).all()
    following = None
    if len(rows) > limit:
        run_id, *values = rows[limit - 1]
        following = encode_cursor(sort, (as_of_ms, *values, run_id))
    return RunPage(read_rows(connection, [row[0] for row in rows[:limit]], now_ms), following)


def _joined_fields(connection: Connection, sort: RunSort) -> tuple[list[list[_Key]], Any]:
    """For each part of the order the keys of a field, none for a column; and the runs joined with the
    fields."""
    names = [plain_text(part.by) for part in sort.parts if is_field(part.by)]
    numbers = ids_of(connection, field.c.name, names)
    source: Any = run
    keys: list[list[_Key]] = []
    for index, part in enumerate(sort.parts):
        if not is_field(part.by):
            keys.append([])
            continue
        values = run_field.alias(f"sorted_{index}")
        # A field that no run has: no id is 0.
        number = numbers.get(plain_text(part.by), 0)
        source = source.outerjoin(values, and_(values.c.run_id == run.c.id, values.c.field_id == number))
        keys.append(
            [
                _Key(func.coalesce(values.c.kind, _MISSING), False, False),
                _Key(func.coalesce(values.c.number, 0.0), part.descending, False),
                _Key(func.coalesce(values.c.text, ""), part.descending, True),
            ]
        )
    return keys, source


def _comes_after(keys: list[_Key], end: list[Any]) -> ColumnElement[bool]:
    """Whether a run comes after the end of a page."""
    later: list[ColumnElement[bool]] = []
    for index, (key, value) in enumerate(zip(keys, end, strict=True)):
        same = [other.by == literal(known) for other, known in zip(keys[:index], end, strict=False)]
        beyond = key.by < literal(value) if key.descending else key.by > literal(value)
        later.append(and_(*same, beyond))
    return or_(*later)


def _read_cursor(after: str, sort: RunSort) -> list[Any]:
    """The time of the first page, the values of the keys of the last run, and its id."""
    types: list[bool] = []
    for part in sort.parts:
        types += [False, False, True] if is_field(part.by) else [part.by in TEXTS]
    values = decode_cursor(sort, after, len(types) + 2)
    try:
        check_integers("after", as_of_ms=values[0], run_id=values[-1])
    except ValueError:
        raise invalid_cursor(after) from None
    if values[0] is None or values[-1] is None:
        raise invalid_cursor(after)
    for value, is_text in zip(values[1:-1], types, strict=True):
        if not is_key_value(value, is_text):
            raise invalid_cursor(after)
    return values


def is_key_value(value: object, is_text: bool) -> bool:
    """Whether a value of a cursor can be one of a text or number column."""
    if isinstance(value, str):
        return is_text and plain_text(value) == value
    if isinstance(value, bool) or is_text:
        return False
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
