"""Filters as SQL, each condition in two ways: a list of the runs that meet it, and a check of one run.

Which is quick depends on how many runs meet it. Few: they are listed through an index and nothing else is
looked at. Many: runs are gone through in the order in which they are wanted, each is checked, and a page is
full soon. Databases guess this from statistics, and guess badly where values are unevenly spread; so the list
is asked for, up to a limit (1 µs a run), and the answer decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    column,
    exists,
    false,
    func,
    literal,
    select,
    table,
)

from runvitals.store.catalogue.database import among, ids_of
from runvitals.store.catalogue.fields import NUMBER
from runvitals.store.catalogue.filters import Filter, Predicate, is_field
from runvitals.store.catalogue.states import state_at
from runvitals.store.catalogue.tables import field as field_table
from runvitals.store.catalogue.tables import project, run, run_field, run_tag, run_text
from runvitals.store.catalogue.texts import plain_text

FEW = 4000
"""Runs that are listed, where there is one condition; five times as many of each where there are more,
because fewer meet all of them."""
_VERY_FEW = 500
MAX_WORD = 200
LAST_CHARACTER = "\U0010ffff"
_TRIGRAMS = 12  # of a long word, that an index is asked for; the word itself is looked for in what that finds
_FULLTEXT = table("run_text_fts", column("rowid"), column("run_text_fts"))
_TERMS = table("run_text_terms", column("doc"), column("term"))


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that holds for some runs.

    Args:
        check: of a row of `run`.
        listing: the ids of all runs for which it holds, through an index; None where there is no index.
        exact: whether `listing` has no others.
    """

    check: ColumnElement[bool]
    listing: Select[Any] | None = None
    exact: bool = True


@dataclass(slots=True)
class Plan:
    """How to find the runs of a filter: `where` holds for them, `candidates` has them, where given."""

    where: list[ColumnElement[bool]] = field(default_factory=list)
    candidates: set[int] | None = None

    def conditions(self, connection: Connection) -> list[ColumnElement[bool]]:
        if self.candidates is None:
            return self.where
        return [among(connection, run.c.id, sorted(self.candidates)), *self.where]


def plan(connection: Connection, wanted: Filter, now_ms: int, project_listed: bool, few: int = FEW) -> Plan:
    """How to find the runs of a filter.

    Args:
        project_listed: whether the project is a condition like the others, because runs are not wanted in an
            order that an index has for each project.
    """
    listed = list(_conditions(connection, wanted, now_ms, project_listed))
    found = Plan([one.check for one in listed if one.listing is None])
    indexed = [one for one in listed if one.listing is not None]
    limit = few if len(indexed) == 1 else 5 * few
    for one in indexed:
        ids = None
        if one.listing is not None and (found.candidates is None or len(found.candidates) > _VERY_FEW):
            ids = connection.execute(one.listing.limit(limit + 1)).scalars().all()
        if ids is None or len(ids) > limit:
            found.where.append(one.check)
            continue
        found.candidates = set(ids) if found.candidates is None else found.candidates.intersection(ids)
        if not one.exact:
            found.where.append(one.check)
    return found


def _conditions(
    connection: Connection, wanted: Filter, now_ms: int, project_listed: bool
) -> Iterator[Condition]:
    yield Condition(run.c.deleted_ms.is_not(None) if wanted.deleted else run.c.deleted_ms.is_(None))
    if wanted.states:
        yield Condition(state_at(now_ms).in_(wanted.states))
    if wanted.project is not None:
        number = ids_of(connection, project.c.name, [plain_text(wanted.project)]).get(
            plain_text(wanted.project)
        )
        yield from _in_project(number, project_listed)
    names = {one.field for one in wanted.where if is_field(one.field)}
    numbers = ids_of(connection, field_table.c.name, {plain_text(name) for name in names})
    for predicate in wanted.where:
        yield _predicate(predicate, numbers.get(plain_text(predicate.field)))
    for tag in wanted.tags:
        tagged = select(run_tag.c.run_id).where(run_tag.c.tag == plain_text(tag))
        yield Condition(exists(tagged.where(run_tag.c.run_id == run.c.id).correlate(run)), tagged)
    for word in plain_text(wanted.text).casefold().split():
        yield _word(connection, word[:MAX_WORD])


def _in_project(number: int | None, listed: bool) -> Iterator[Condition]:
    if number is None:
        yield Condition(false())
    elif listed:
        # The sum keeps SQLite from going through the project's runs after it turned out that they are many.
        check = run.c.project_id + literal(0) == number
        yield Condition(check, select(run.c.id).where(run.c.project_id == number))
    else:
        yield Condition(run.c.project_id == number)


def compared(operand: ColumnElement[Any], operator: str, value: object) -> ColumnElement[bool]:
    return operand.op(operator, is_comparison=True)(value)  # `!=` and all the others are the same in SQL


def _predicate(predicate: Predicate, number: int | None) -> Condition:
    value = predicate.scalar
    if not is_field(predicate.field):
        shown = value.number if value.kind == NUMBER else value.text
        return Condition(compared(COLUMNS[predicate.field], predicate.operator, shown))
    if number is None:  # a field that no run has
        return Condition(false())
    holds = [run_field.c.field_id == number, run_field.c.kind == value.kind]
    if value.kind == NUMBER:
        holds.append(compared(run_field.c.number, predicate.operator, value.number))
    else:
        holds += [run_field.c.number == 0.0, compared(run_field.c.text, predicate.operator, value.text)]
    meeting = select(run_field.c.run_id).where(*holds)
    return Condition(exists(meeting.where(run_field.c.run_id == run.c.id).correlate(run)), meeting)


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
"""Columns of a run by the names that people use."""


def _word(connection: Connection, word: str) -> Condition:
    text = select(run_text.c.text).where(run_text.c.run_id == run.c.id).correlate(run).scalar_subquery()
    if connection.dialect.name == "sqlite":
        return Condition(func.instr(text, word) > 0, _listed_by_sqlite(word), exact=len(word) <= 3)
    check = func.strpos(text, word) > 0
    if len(word) < 3:  # no index of PostgreSQL knows of less than three letters
        return Condition(check)
    return Condition(check, select(run_text.c.run_id).where(run_text.c.text.contains(word, autoescape=True)))


def _listed_by_sqlite(word: str) -> Select[Any]:
    if len(word) < 3:
        begins = (_TERMS.c.term >= word, _TERMS.c.term <= word + 2 * LAST_CHARACTER)
        return select(_TERMS.c.doc).where(*begins).distinct()
    places = range(len(word) - 2)
    step = max(1, len(places) // _TRIGRAMS)
    trigrams = {word[place : place + 3].replace('"', '""') for place in places[::step]}
    match = " AND ".join(f'"{trigram}"' for trigram in sorted(trigrams))
    return select(_FULLTEXT.c.rowid).where(_FULLTEXT.c.run_text_fts.op("MATCH")(match))
