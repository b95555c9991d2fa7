"""Lists of runs: filtered, sorted by any column or field, and paged."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from runvitals.model.fields import TEXT
from runvitals.model.filter import Filter, is_field
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.server.database.tables.runs import run
from runvitals.server.database.text import check_integers
from runvitals.server.runs.storage.filter_sql import plan
from runvitals.server.runs.storage.run_columns import TEXTS
from runvitals.server.runs.storage.run_order import MatchingRuns, SortKey
from runvitals.server.runs.storage.run_rows import RunPage, read_rows
from runvitals.server.runs.storage.run_sorting import is_key_value, sorted_page


def page(
    connection: Connection,
    run_filter: Filter,
    sort: RunSort,
    limit: int,
    after: str | None,
    now_ms: int,
    skip: int,
) -> RunPage:
    """Implements `RunTable.page`."""
    if sort.then:
        return sorted_page(connection, run_filter, sort, limit, after, now_ms, skip)
    as_of_ms, position = (now_ms, None) if after is None else _read_cursor(after, sort)
    positions = MatchingRuns(connection, run_filter, as_of_ms).positions(sort, limit + 1, position, skip)
    following = _cursor(sort, positions[limit - 1], as_of_ms) if len(positions) > limit else None
    return RunPage(read_rows(connection, [position.id for position in positions[:limit]], now_ms), following)


def count(connection: Connection, run_filter: Filter, now_ms: int, up_to: int | None) -> int:
    """Implements `RunTable.count`."""
    statement = select(run.c.id).where(*plan(connection, run_filter, now_ms, up_to).where)
    if up_to is not None:
        statement = statement.limit(up_to)
    return connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()


def _cursor(sort: RunSort, position: SortKey, as_of_ms: int) -> str:
    return encode_cursor(sort, (as_of_ms, position.kind, position.value, position.id))


def _read_cursor(after: str, sort: RunSort) -> tuple[int, SortKey]:
    as_of_ms, kind, value, run_id = decode_cursor(sort, after, 4)
    try:
        check_integers("after", as_of_ms=as_of_ms, kind=kind, run_id=run_id)
    except ValueError:
        raise invalid_cursor(after) from None
    is_text = kind == TEXT if is_field(sort.by) else sort.by in TEXTS
    if None in (as_of_ms, kind, run_id) or not is_key_value(value, is_text):
        raise invalid_cursor(after)
    return as_of_ms, SortKey(kind, value, run_id)
