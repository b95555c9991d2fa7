"""The fields of runs: values of columns, and what names there are with some of their values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from runvitals.model.completion import MAX_VALUES, FieldChoice
from runvitals.model.fields import NUMBER
from runvitals.model.filter import Filter
from runvitals.model.names import plain_text
from runvitals.server.database.database import among, ids_of
from runvitals.server.database.tables.runs import field, run, run_field, run_tag, writer
from runvitals.server.runs.storage.filter_sql import plan
from runvitals.server.runs.storage.run_columns import sorted_columns

NEWEST = 1000
"""How many runs the list of names considers."""
_EXAMPLES = 200
"""How many runs the examples of values are from."""
_MAX_EXAMPLES = 50_000
_LABELS = {
    "project": "project",
    "entity": "entity",
    "user": "author",
    "group": "group",
    "job_type": "job_type",
    "name": "name",
}


def values_of(
    connection: Connection, run_ids: Sequence[int], names: Sequence[str]
) -> dict[int, dict[str, str | float]]:
    """Return the values of fields of runs, by run and name; missing ones are left out."""
    numbers = ids_of(connection, field.c.name, map(plain_text, names))
    by_number = {number: name for name, number in numbers.items()}
    statement = select(
        run_field.c.run_id, run_field.c.field_id, run_field.c.kind, run_field.c.number, run_field.c.text
    ).where(
        among(connection, run_field.c.run_id, run_ids), among(connection, run_field.c.field_id, by_number)
    )
    values: dict[int, dict[str, str | float]] = defaultdict(dict)
    for run_id, number, kind, value, text in connection.execute(statement):
        values[run_id][by_number[number]] = value if kind == NUMBER else text
    return values


def names_of(connection: Connection, run_filter: Filter, now_ms: int) -> list[str]:
    """Implements `RunTable.fields`."""
    newest = _newest(connection, run_filter, now_ms, NEWEST)
    theirs = select(run_field.c.field_id).where(run_field.c.run_id.in_(newest))
    statement = select(field.c.name).where(field.c.id.in_(theirs)).order_by(field.c.name)
    return list(connection.execute(statement).scalars())


def _newest(connection: Connection, run_filter: Filter, now_ms: int, limit: int) -> Select[Any]:
    conditions = plan(connection, run_filter, now_ms, needed=limit).where
    return select(run.c.id).where(*conditions).order_by(run.c.started_ms.desc()).limit(limit)


def choices_of(connection: Connection, run_filter: Filter, now_ms: int) -> list[FieldChoice]:
    """Return what a filter can name, with the most frequent values of the newest runs."""
    newest = list(connection.execute(_newest(connection, run_filter, now_ms, NEWEST)).scalars())
    labels = [
        FieldChoice(label, "text", _most_frequent(connection, sorted_columns(now_ms)[column], newest))
        for label, column in _LABELS.items()
    ]
    labels.append(FieldChoice("tag", "text", _of_runs(connection, run_tag.c.tag, run_tag.c.run_id, newest)))
    labels.append(FieldChoice("host", "text", _of_runs(connection, writer.c.host, writer.c.run_id, newest)))
    return [*labels, *_field_choices(connection, run_filter, newest, now_ms)]


def _most_frequent(
    connection: Connection, column: ColumnElement[str], runs: Sequence[int]
) -> tuple[str, ...]:
    value = column.label("value")
    statement = (
        select(value)
        .where(among(connection, run.c.id, runs))
        .group_by(value)
        .order_by(func.count().desc(), value)
        .limit(MAX_VALUES + 1)
    )
    return tuple(text for text in connection.execute(statement).scalars() if text)[:MAX_VALUES]


def _of_runs(
    connection: Connection, column: ColumnElement[str], run_id: ColumnElement[int], runs: Sequence[int]
) -> tuple[str, ...]:
    statement = (
        select(column)
        .where(among(connection, run_id, runs))
        .group_by(column)
        .order_by(func.count(func.distinct(run_id)).desc(), column)
        .limit(MAX_VALUES)
    )
    return tuple(connection.execute(statement).scalars())


def _field_choices(
    connection: Connection, run_filter: Filter, newest: Sequence[int], now_ms: int
) -> list[FieldChoice]:
    """Return the fields, each with the most frequent values in some of the runs."""
    statement = (
        select(field.c.name, run_field.c.kind, run_field.c.number, run_field.c.text)
        .join(field, field.c.id == run_field.c.field_id)
        .where(among(connection, run_field.c.run_id, newest[:_EXAMPLES]))
        .limit(_MAX_EXAMPLES)
    )
    numbers: dict[str, Counter[float]] = defaultdict(Counter)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind, number, text in connection.execute(statement):
        if kind == NUMBER:
            numbers[name][number] += 1
        else:
            texts[name][text] += 1
    choices = []
    for name in names_of(connection, run_filter, now_ms):
        is_text = name in texts and sum(texts[name].values()) >= sum(numbers[name].values())
        common = texts[name].most_common(MAX_VALUES) if is_text else numbers[name].most_common(MAX_VALUES)
        choices.append(
            FieldChoice(name, "text" if is_text else "number", tuple(value for value, _ in common))
        )
    return choices
