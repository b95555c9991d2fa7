"""Conditions on runs as SQL: what a filter of the metadata store is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    column,
    exists,
    false,
    func,
    literal,
    select,
    table,
    true,
    union_all,
)

from runvitals.model.fields import NUMBER
from runvitals.model.filter import Predicate, is_field
from runvitals.model.names import plain_text
from runvitals.model.state import RUNNING
from runvitals.server.database.database import among
from runvitals.server.database.tables.runs import device, run, run_device, run_field, run_text
from runvitals.server.database.text import LAST_CHARACTER
from runvitals.server.runs.storage.run_states import state_at

_TRIGRAMS = 12  # looked up in the index per long word; the word itself is then matched against the results
_FULLTEXT = table("run_text_fts", column("rowid"), column("run_text_fts"))
_TERMS = table("run_text_terms", column("doc"), column("term"))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on runs.

    Args:
        check: an expression on a row of `run`.
        listing: selects the ids of all matching runs through an index; None if there is no index.
        exact: whether `listing` returns only matching runs.
    """

    check: ColumnElement[bool]
    listing: Select[Any] | None = None
    exact: bool = True


def with_device(identity: str) -> Condition:
    """Return runs that used a device, or saw it and may have used it."""
    using = (
        select(run_device.c.run_id)
        .join(device, device.c.id == run_device.c.device_id)
        .where(device.c.identity == plain_text(identity), func.coalesce(run_device.c.used, true()))
    )
    return Condition(exists(using.where(run_device.c.run_id == run.c.id).correlate(run)), using)


def in_states(states: Iterable[str], now_ms: int) -> Condition:
    """Return runs in one of these states."""
    states = set(states)
    until, settled = run.c.alive_until_ms, [state for state in states if state != RUNNING]
    conditions: list[ColumnElement[bool]] = []
    if settled:
        of_state = run.c.settled_state.in_(settled)
        conditions = [and_(until.is_(None), of_state), and_(until < now_ms, of_state)]
    if RUNNING in states:
        conditions.append(until >= now_ms)
    listed = union_all(*(select(run.c.id).where(condition) for condition in conditions)).subquery()
    return Condition(state_at(now_ms).in_(states), select(listed))


def of_projects(connection: Connection, numbers: Iterable[int]) -> Condition:
    """Return runs of these projects."""
    # The `+ 0` keeps SQLite from scanning all runs of the projects if counting showed that there are many.
    check = among(connection, run.c.project_id + literal(0), numbers)
    return Condition(check, select(run.c.id).where(among(connection, run.c.project_id, numbers)))


def compare(operand: ColumnElement[Any], operator: str, value: object) -> ColumnElement[bool]:
    """Return a comparison by one of the operators of predicates."""
    return operand.op(operator, is_comparison=True)(value)  # our operators are those of SQL


def compares(predicate: Predicate, number: int | None) -> Condition:
    """Return runs for which a predicate holds.

    Args:
        number: the id of its field; None: no run has such a field.
    """
    value = predicate.scalar
    if not is_field(predicate.field):
        operand = value.number if value.kind == NUMBER else plain_text(str(predicate.value))
        return Condition(compare(COLUMNS[predicate.field], predicate.operator, operand))
    if number is None:
        return Condition(false())
    conditions = [run_field.c.field_id == number, run_field.c.kind == value.kind]
    if value.kind == NUMBER:
        conditions.append(compare(run_field.c.number, predicate.operator, value.number))
    else:
        conditions += [run_field.c.number == 0.0, compare(run_field.c.text, predicate.operator, value.text)]
    matches = select(run_field.c.run_id).where(*conditions)
    return Condition(exists(matches.where(run_field.c.run_id == run.c.id).correlate(run)), matches)


COLUMNS: dict[str, ColumnElement[str] | ColumnElement[int]] = {
    "id": run.c.uid,
    "name": run.c.name,
    "group": run.c.group_name,
    "job_type": run.c.job_type,
    "started_ms": run.c.started_ms,
    "last_ms": run.c.last_ms,
    "duration_ms": run.c.last_ms - run.c.started_ms,
    "exit_code": run.c.exit_code,
    "signal": run.c.signal,
}
"""The columns of a run, by the names that users see."""


def has_words(connection: Connection, words: list[str]) -> Condition:
    """Return runs whose search text contains each of these texts."""
    text = select(run_text.c.text).where(run_text.c.run_id == run.c.id).correlate(run).scalar_subquery()
    if connection.dialect.name == "sqlite":
        check = and_(*(func.instr(text, word) > 0 for word in words))
        return Condition(check, _sqlite_listing(words), exact=False)
    check = and_(*(func.strpos(text, word) > 0 for word in words))
    if all(len(word) < 3 for word in words):  # PostgreSQL's index needs at least three characters
        return Condition(check)
    conditions = (run_text.c.text.contains(word, autoescape=True) for word in words)
    return Condition(check, select(run_text.c.run_id).where(*conditions))


def _sqlite_listing(words: list[str]) -> Select[Any]:
    """Return the runs whose texts contain some trigrams of the words, chosen to cover most characters."""
    trigrams: set[str] = set()
    for word in words:
        last = len(word) - 3
        offsets = {*range(0, last, max(3, last // _TRIGRAMS)), last} if last >= 0 else ()
        trigrams.update(word[offset : offset + 3] for offset in offsets)
    if trigrams:
        match = " AND ".join('"{}"'.format(trigram.replace('"', '""')) for trigram in sorted(trigrams))
        return select(_FULLTEXT.c.rowid).where(_FULLTEXT.c.run_text_fts.op("MATCH")(match))
    longest = max(words, key=len)
    prefix = (_TERMS.c.term >= longest, _TERMS.c.term <= longest + 2 * LAST_CHARACTER)
    return select(_TERMS.c.doc).where(*prefix).distinct()
