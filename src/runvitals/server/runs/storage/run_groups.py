"""Groups of runs, and the statistics of their columns, computed by the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, and_, case, cast, func, select

from runvitals.model.fields import NUMBER
from runvitals.model.filter import Filter, is_field
from runvitals.model.names import plain_text
from runvitals.model.run_groups import MAX_GROUPS, ColumnSummary, GroupValue, RunGroup, TooManyGroups
from runvitals.model.state import STATES
from runvitals.server.database.database import ids_of
from runvitals.server.database.tables.runs import field, run, run_field, run_tag, writer
from runvitals.server.runs.storage.filter_conditions import COLUMNS
from runvitals.server.runs.storage.filter_sql import plan
from runvitals.server.runs.storage.run_columns import sorted_columns
from runvitals.server.runs.storage.run_states import state_at

_STATISTICS = 5
"""How many values a `ColumnSummary` has."""


def groups_of(
    connection: Connection, run_filter: Filter, by: Sequence[str], columns: Sequence[str], now_ms: int
) -> list[RunGroup]:
    """Return the groups of the runs that match a filter, unordered; without `by` one group of all.

    Raises:
        TooManyGroups: there are too many.
    """
    names = {plain_text(name) for name in (*by, *columns) if is_field(name)}
    numbers = ids_of(connection, field.c.name, names)
    source, keys = _keys(by, numbers, now_ms)
    source, summaries = _summaries(source, columns, numbers)
    state = state_at(now_ms)
    states = [func.sum(case((state == name, 1), else_=0)) for name in STATES]
    started = [func.count(), func.min(run.c.started_ms), func.max(run.c.started_ms)]
    durations = _statistics(COLUMNS["duration_ms"])
    selected = [*keys, *started, *states, *durations, *summaries]
    statement = (
        select(*(expression.label(f"value_{index}") for index, expression in enumerate(selected)))
        .select_from(source)
        .where(*plan(connection, run_filter, now_ms, needed=None).where)
        .limit(MAX_GROUPS + 1)
    )
    if keys:
        statement = statement.group_by(*keys)
    rows = connection.execute(statement).all()
    if len(rows) > MAX_GROUPS:
        raise TooManyGroups
    return [_group(list(row), by, columns) for row in rows]


def _keys(by: Sequence[str], numbers: Mapping[str, int], now_ms: int) -> tuple[Any, list[ColumnElement[Any]]]:
    """Return the runs joined with what they are grouped by, and its columns: three of a field."""
    source: Any = run
    keys: list[ColumnElement[Any]] = []
    of_run = {**sorted_columns(now_ms)}
    of_run["user"] = of_run["author"]
    for index, name in enumerate(by):
        if is_field(name):
            values = run_field.alias(f"by_{index}")
            is_field_of_run = and_(
                values.c.run_id == run.c.id, values.c.field_id == numbers.get(plain_text(name), 0)
            )
            source = source.outerjoin(values, is_field_of_run)
            keys += [values.c.kind, values.c.number, values.c.text]
        elif name == "tag":
            tags = run_tag.alias(f"by_{index}")
            source = source.outerjoin(tags, tags.c.run_id == run.c.id)
            keys.append(tags.c.tag)
        elif name == "host":
            hosts = select(writer.c.run_id, writer.c.host).distinct().subquery(f"by_{index}")
            source = source.outerjoin(hosts, hosts.c.run_id == run.c.id)
            keys.append(hosts.c.host)
        else:
            keys.append(of_run[name])
    return source, keys


def _summaries(
    source: Any, columns: Sequence[str], numbers: Mapping[str, int]
) -> tuple[Any, list[ColumnElement[Any]]]:
    """Return the runs joined with the numbers of columns, and the statistics of each."""
    summaries: list[ColumnElement[Any]] = []
    for index, name in enumerate(columns):
        values = run_field.alias(f"column_{index}")
        of_run = and_(
            values.c.run_id == run.c.id,
            values.c.field_id == numbers.get(plain_text(name), 0),
            values.c.kind == NUMBER,
        )
        source = source.outerjoin(values, of_run)
        summaries += _statistics(values.c.number)
    return source, summaries


def _statistics(number: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    """Return the parts of a `ColumnSummary`, as SQL expressions."""
    number = cast(number, Double)
    return [func.count(number), func.min(number), func.avg(number), func.max(number), func.sum(number)]


def _group(row: list[Any], by: Sequence[str], columns: Sequence[str]) -> RunGroup:
    values: list[GroupValue] = []
    at = 0
    for name in by:
        if is_field(name):
            kind, number, text = row[at : at + 3]
            values.append(None if kind is None else number if kind == NUMBER else text)
            at += 3
        else:
            values.append(row[at] or None)
            at += 1
    runs, first_ms, last_ms = row[at : at + 3]
    at += 3
    counts = row[at : at + len(STATES)]
    at += len(STATES)
    durations, *summaries = (ColumnSummary(*part) for part in _parts(row[at:], _STATISTICS))
    states = {name: int(count) for name, count in zip(STATES, counts, strict=True) if count}
    of_columns = dict(zip(columns, summaries, strict=True))
    return RunGroup(tuple(values), runs, states, first_ms, last_ms, durations, of_columns)


def _parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[at : at + size] for at in range(0, len(values), size))
