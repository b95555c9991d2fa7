"""Lists of runs: filtered, sorted by any column or field, and paged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, func, literal, select, tuple_

from runvitals.model.fields import NUMBER, TEXT
from runvitals.model.filter import Filter, is_field
from runvitals.model.names import plain_text
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.store.metadata.database import ids_of
from runvitals.store.metadata.filter_sql import Plan, plan
from runvitals.store.metadata.run_columns import TEXTS, sorted_columns
from runvitals.store.metadata.run_rows import RunPage, read_rows
from runvitals.store.metadata.run_sorting import is_key_value, sorted_page
from runvitals.store.metadata.tables import field, run, run_field
from runvitals.store.metadata.text import check_integers

_MISSING = 2  # the kind of runs without a value: sorted after numbers and texts


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where a page ended: the last run's kind of value, value and id."""

    kind: int
    value: float | str
    id: int


def page(
    connection: Connection,
    wanted: Filter,
    sort: RunSort,
    limit: int,
    after: str | None,
    now_ms: int,
    skip: int,
) -> RunPage:
    """Implements `RunTable.page`."""
    if sort.then:
        return sorted_page(connection, wanted, sort, limit, after, now_ms, skip)
    as_of_ms, position = (now_ms, None) if after is None else _read_cursor(after, sort)
    if is_field(sort.by):
        positions = _by_field(connection, wanted, sort, limit + 1, position, as_of_ms, skip)
    else:
        positions = _by_column(connection, wanted, sort, limit + 1, position, as_of_ms, skip)
    following = _cursor(sort, positions[limit - 1], as_of_ms) if len(positions) > limit else None
    return RunPage(read_rows(connection, [position.id for position in positions[:limit]], now_ms), following)


def _by_column(
    connection: Connection,
    wanted: Filter,
    sort: RunSort,
    limit: int,
    position: PagePosition | None,
    now_ms: int,
    skip: int,
) -> list[PagePosition]:
    by = sorted_columns(now_ms)[sort.by]
    needed = limit + skip if sort.by in ("started_ms", "name", "id") else None
    query_plan = plan(connection, wanted, now_ms, needed)
    statement = _ordered(
        select(run.c.id, by.label("value")).where(*query_plan.where), by, run.c.id, sort, position
    )
    rows = connection.execute(statement.limit(limit).offset(skip))
    return [PagePosition(0, row.value, row.id) for row in rows]


def _ordered(
    statement: Select[Any],
    by: ColumnElement[Any],
    then: ColumnElement[int],
    sort: RunSort,
    position: PagePosition | None,
) -> Select[Any]:
    if position is not None:
        current, last = tuple_(by, then), tuple_(literal(position.value), literal(position.id))
        statement = statement.where(current < last if sort.descending else current > last)
    if sort.descending:
        return statement.order_by(by.desc(), then.desc())
    return statement.order_by(by, then)


def _by_field(
    connection: Connection,
    wanted: Filter,
    sort: RunSort,
    limit: int,
    position: PagePosition | None,
    now_ms: int,
    skip: int,
) -> list[PagePosition]:
    """Numbers, then texts, then runs without a value; an index provides the order of each part."""
    number = ids_of(connection, field.c.name, [plain_text(sort.by)]).get(plain_text(sort.by))
    query_plan = plan(connection, wanted, now_ms, limit + skip, project_indexed=False)
    first = NUMBER if position is None else position.kind
    found: list[PagePosition] = []
    for kind in range(NUMBER if number is not None else _MISSING, _MISSING + 1):
        if kind < first or len(found) >= limit:
            continue
        start = position if position is not None and kind == position.kind else None
        if kind == _MISSING:
            statement = _without_value(query_plan, number, start)
        else:
            statement = _with_value(query_plan, number, kind, sort, start)
        rows = connection.execute(statement.limit(limit - len(found)).offset(skip)).all()
        if skip and not rows:  # the part may have fewer runs than are left out
            skip -= min(skip, _size(connection, statement))
        elif rows:
            skip = 0
        found += [PagePosition(kind, row.value, row.id) for row in rows]
    return found


def _size(connection: Connection, statement: Select[Any]) -> int:
    """How many rows a statement has."""
    rows = statement.order_by(None).subquery()
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def _with_value(
    query_plan: Plan, number: int | None, kind: int, sort: RunSort, position: PagePosition | None
) -> Select[Any]:
    by = run_field.c.number if kind == NUMBER else run_field.c.text
    # The fields of listed runs are looked up by run; the `+ 0` keeps SQLite from scanning the index of all
    # values.
    of_kind = run_field.c.kind + literal(0) if query_plan.listed else run_field.c.kind
    statement = (
        select(run.c.id, by.label("value"))
        .join(run_field, run_field.c.run_id == run.c.id)
        .where(run_field.c.field_id == number, of_kind == kind, *query_plan.where)
    )
    if kind == TEXT:
        statement = statement.where(run_field.c.number == 0.0)
    return _ordered(statement, by, run_field.c.run_id, sort, position)


def _without_value(query_plan: Plan, number: int | None, position: PagePosition | None) -> Select[Any]:
    """The newest first, in both directions."""
    statement = select(run.c.id, run.c.started_ms.label("value")).where(*query_plan.where)
    if number is not None:
        having = select(run_field.c.run_id).where(run_field.c.field_id == number)
        statement = statement.where(~exists(having.where(run_field.c.run_id == run.c.id).correlate(run)))
    return _ordered(statement, run.c.started_ms, run.c.id, RunSort(), position)


def count(connection: Connection, wanted: Filter, now_ms: int, up_to: int | None) -> int:
    """Implements `RunTable.count`."""
    statement = select(run.c.id).where(*plan(connection, wanted, now_ms, up_to).where)
    if up_to is not None:
        statement = statement.limit(up_to)
    return connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()


def _cursor(sort: RunSort, position: PagePosition, as_of_ms: int) -> str:
    return encode_cursor(sort, (as_of_ms, position.kind, position.value, position.id))


def _read_cursor(after: str, sort: RunSort) -> tuple[int, PagePosition]:
    as_of_ms, kind, value, run_id = decode_cursor(sort, after, 4)
    try:
        check_integers("after", as_of_ms=as_of_ms, kind=kind, run_id=run_id)
    except ValueError:
        raise invalid_cursor(after) from None
    is_text = kind == TEXT if is_field(sort.by) else sort.by in TEXTS
    if None in (as_of_ms, kind, run_id) or not is_key_value(value, is_text):
        raise invalid_cursor(after)
    return as_of_ms, PagePosition(kind, value, run_id)
