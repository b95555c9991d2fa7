"""Runs in the order of one column or field, through an index where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, func, literal, select, tuple_

from runvitals.model.fields import NUMBER, TEXT
from runvitals.model.filter import Filter, is_field
from runvitals.model.names import plain_text
from runvitals.model.run_sort import RunSort
from runvitals.server.database.database import ids_of
from runvitals.server.database.tables.runs import field, run, run_field
from runvitals.server.runs.storage.filter_conditions import Condition
from runvitals.server.runs.storage.filter_sql import FilterPlan, plan
from runvitals.server.runs.storage.run_columns import sorted_columns

MISSING = 2
"""The kind of runs without a value: sorted after numbers and texts."""
_INDEXED = ("started_ms", "name", "id")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A place in the order: a run's kind of value, its value and its id."""

    kind: int
    value: float | str
    id: int


@dataclass(frozen=True, slots=True)
class MatchingRuns:
    """The runs that are sorted.

    Args:
        also: conditions besides the filter.
    """

    connection: Connection
    run_filter: Filter
    now_ms: int
    also: Sequence[Condition] = ()

    def plan(self, needed: int | None, project_indexed: bool = True) -> FilterPlan:
        """Return how to find them; the arguments are those of `filter_sql.plan`."""
        return plan(self.connection, self.run_filter, self.now_ms, needed, project_indexed, self.also)

    def positions(self, sort: RunSort, limit: int, after: SortKey | None, skip: int) -> list[SortKey]:
        """Their positions in the order of the first part of `sort`; without a value, the newest first."""
        if is_field(sort.by):
            return self._by_field(sort, limit, after, skip)
        return self._by_column(sort, limit, after, skip)

    def before(self, sort: RunSort, kind: int, value: float | str | None) -> int:
        """Return how many of them come before those with a value in the order of the first part of `sort`."""
        if not is_field(sort.by):
            by = sorted_columns(self.now_ms)[sort.by]
            statement = select(run.c.id).where(*self.plan(None).where, _earlier(by, value, sort))
            return _size(self.connection, statement)
        number, query_plan = field_id(self.connection, sort.by), self.plan(None, project_indexed=False)
        count = 0
        for earlier in range(kind + 1 if number is not None else 0):
            if earlier == MISSING:
                continue
            statement = _with_value(query_plan, number, earlier, sort, None)
            if earlier == kind:
                by = run_field.c.number if kind == NUMBER else run_field.c.text
                statement = statement.where(_earlier(by, value, sort))
            count += _size(self.connection, statement)
        return count

    def _by_column(self, sort: RunSort, limit: int, after: SortKey | None, skip: int) -> list[SortKey]:
        by = sorted_columns(self.now_ms)[sort.by]
        query_plan = self.plan(limit + skip if sort.by in _INDEXED else None)
        statement = _order(
            select(run.c.id, by.label("value")).where(*query_plan.where), by, run.c.id, sort, after
        )
        rows = self.connection.execute(statement.limit(limit).offset(skip))
        return [SortKey(0, row.value, row.id) for row in rows]

    def _by_field(self, sort: RunSort, limit: int, after: SortKey | None, skip: int) -> list[SortKey]:
        """Numbers, then texts, then runs without a value; an index provides the order of each part."""
        number = field_id(self.connection, sort.by)
        query_plan = self.plan(limit + skip, project_indexed=False)
        first = NUMBER if after is None else after.kind
        keys: list[SortKey] = []
        for kind in range(NUMBER if number is not None else MISSING, MISSING + 1):
            if kind < first or len(keys) >= limit:
                continue
            start = after if after is not None and kind == after.kind else None
            if kind == MISSING:
                statement = _without_value(query_plan, number, start)
            else:
                statement = _with_value(query_plan, number, kind, sort, start)
            rows = self.connection.execute(statement.limit(limit - len(keys)).offset(skip)).all()
            if skip and not rows:  # the part may have fewer runs than are left out
                skip -= min(skip, _size(self.connection, statement))
            elif rows:
                skip = 0
            keys += [SortKey(kind, row.value, row.id) for row in rows]
        return keys


def field_id(connection: Connection, name: str) -> int | None:
    """Return the id of a field; None if no run has it."""
    return ids_of(connection, field.c.name, [plain_text(name)]).get(plain_text(name))


def _order(
    statement: Select[Any],
    by: ColumnElement[Any],
    then: ColumnElement[int],
    sort: RunSort,
    after: SortKey | None,
) -> Select[Any]:
    if after is not None:
        current, last = tuple_(by, then), tuple_(literal(after.value), literal(after.id))
        statement = statement.where(current < last if sort.descending else current > last)
    if sort.descending:
        return statement.order_by(by.desc(), then.desc())
    return statement.order_by(by, then)


def _earlier(by: ColumnElement[Any], value: float | str | None, sort: RunSort) -> ColumnElement[bool]:
    return by > literal(value) if sort.descending else by < literal(value)


def _size(connection: Connection, statement: Select[Any]) -> int:
    """Return how many rows a statement has."""
    rows = statement.order_by(None).subquery()
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def _with_value(
    query_plan: FilterPlan, number: int | None, kind: int, sort: RunSort, after: SortKey | None
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
    return _order(statement, by, run_field.c.run_id, sort, after)


def _without_value(query_plan: FilterPlan, number: int | None, after: SortKey | None) -> Select[Any]:
    """Return the newest first, in both directions."""
    statement = select(run.c.id, run.c.started_ms.label("value")).where(*query_plan.where)
    if number is not None:
        statement = statement.where(without_field(number))
    return _order(statement, run.c.started_ms, run.c.id, RunSort(), after)


def without_field(number: int) -> ColumnElement[bool]:
    """Return whether a run has no value of a field."""
    having = select(run_field.c.run_id).where(run_field.c.field_id == number)
    return ~exists(having.where(run_field.c.run_id == run.c.id).correlate(run))
