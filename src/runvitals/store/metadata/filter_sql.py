"""Converts filters to SQL. Each condition has two forms: a list of the matching runs, and a check of one run.

Which one is faster depends on how many runs match. Few: list them through an index and look only at those.
Many: scan the runs in the requested order and check each, which fills a page quickly. Databases estimate this
from statistics, and are wrong for unevenly distributed values. So each condition is counted first, up to a
limit (0.1 µs per run, 0.6 µs for text), and the counts decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    or_,
    select,
    table,
    true,
    union_all,
)

from runvitals.model.fields import NUMBER
from runvitals.model.filter import Filter, Predicate, ReadableRuns, is_field
from runvitals.model.names import plain_text
from runvitals.model.state import RUNNING
from runvitals.store.metadata.accounts.tables import entity, user_account
from runvitals.store.metadata.database import among, ids_of
from runvitals.store.metadata.run_states import state_at
from runvitals.store.metadata.tables import device, project, run, run_device, run_field, run_tag, run_text
from runvitals.store.metadata.tables import field as field_table
from runvitals.store.metadata.text import LAST_CHARACTER

FEW = 10_000
"""Up to this many runs are always listed: they cost 2 µs each, however the conditions correlate."""
COUNTED = 30_000
"""Where counting stops. A condition matched by this many runs is never listed."""
MAX_WORDS, MAX_WORD = 20, 200
"""Words that a search matches, and characters of each."""
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


class Plan(NamedTuple):
    """How to find runs: the condition to check, and whether a list of runs is part of it."""

    where: list[ColumnElement[bool]]
    listed: bool


def plan(
    connection: Connection,
    wanted: Filter,
    now_ms: int,
    needed: int | None,
    project_indexed: bool = True,
) -> Plan:
    """Plan the query for a filter.

    Args:
        needed: how many runs are wanted, in the order of an index; None: all runs, or another order.
        project_indexed: whether that index starts with the project.
    """
    conditions = list(_conditions(connection, wanted, now_ms, project_indexed))
    driver: Condition | None = None
    smallest, share = COUNTED, 1.0
    total = connection.execute(select(func.max(run.c.id))).scalar() or 0
    for condition in conditions:
        if condition.listing is None:
            continue
        counted = select(func.count()).select_from(condition.listing.limit(COUNTED).subquery())
        matches = connection.execute(counted).scalar_one()
        share *= min(1.0, matches / max(total, 1))
        if matches < smallest:
            driver, smallest = condition, matches
    scanned = math.inf if needed is None else needed / max(share, 1e-9)
    if driver is None or driver.listing is None or (smallest > FEW and smallest > scanned):
        return Plan([condition.check for condition in conditions], listed=False)
    others = [condition.check for condition in conditions if condition is not driver or not condition.exact]
    return Plan([run.c.id.in_(driver.listing), *others], listed=True)


def _conditions(
    connection: Connection, wanted: Filter, now_ms: int, project_indexed: bool
) -> Iterator[Condition]:
    yield Condition(run.c.deleted_ms.is_not(None) if wanted.deleted else run.c.deleted_ms.is_(None))
    if wanted.states:
        yield _in_states(wanted.states, now_ms)
    projects = _project_ids(connection, wanted)
    if projects is not None:
        yield _in_projects(connection, projects, project_indexed)
    readable = wanted.readable
    if readable is not None and (
        projects is None or wanted.deleted or not readable.projects.issuperset(projects)
    ):
        yield _readable(connection, readable, wanted.deleted)
    if wanted.author is not None:
        yield _by_author(connection, wanted.author)
    names = {predicate.field for predicate in wanted.where if is_field(predicate.field)}
    numbers = ids_of(connection, field_table.c.name, {plain_text(name) for name in names})
    for predicate in wanted.where:
        yield _predicate(predicate, numbers.get(plain_text(predicate.field)))
    for tag in wanted.tags:
        tagged = select(run_tag.c.run_id).where(run_tag.c.tag == plain_text(tag))
        yield Condition(exists(tagged.where(run_tag.c.run_id == run.c.id).correlate(run)), tagged)
    if wanted.device is not None:
        yield _with_device(wanted.device)
    words = plain_text(wanted.text).casefold().split()[:MAX_WORDS]
    if words:
        yield _text(connection, [word[:MAX_WORD] for word in words])


def _with_device(identity: str) -> Condition:
    using = (
        select(run_device.c.run_id)
        .join(device, device.c.id == run_device.c.device_id)
        .where(device.c.identity == plain_text(identity), func.coalesce(run_device.c.used, true()))
    )
    return Condition(exists(using.where(run_device.c.run_id == run.c.id).correlate(run)), using)


def _in_states(states: tuple[str, ...], now_ms: int) -> Condition:
    until, settled = run.c.alive_until_ms, [state for state in states if state != RUNNING]
    conditions: list[ColumnElement[bool]] = []
    if settled:
        of_state = run.c.settled_state.in_(settled)
        conditions = [and_(until.is_(None), of_state), and_(until < now_ms, of_state)]
    if RUNNING in states:
        conditions.append(until >= now_ms)
    listed = union_all(*(select(run.c.id).where(condition) for condition in conditions)).subquery()
    return Condition(state_at(now_ms).in_(states), select(listed))


def _project_ids(connection: Connection, wanted: Filter) -> list[int] | None:
    """The projects that a filter names; None if it names neither a project nor an entity."""
    statement = select(project.c.id)
    if wanted.project is not None:
        statement = statement.where(project.c.name == plain_text(wanted.project))
    if wanted.entity is not None:
        statement = statement.join(entity, entity.c.id == project.c.entity_id)
        statement = statement.where(entity.c.name == plain_text(wanted.entity))
    if wanted.project is None and wanted.entity is None:
        return None
    return list(connection.execute(statement).scalars())


def _by_author(connection: Connection, name: str) -> Condition:
    named = (
        select(user_account.c.id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(entity.c.name == plain_text(name), user_account.c.deleted_ms.is_(None))
    )
    author_id = connection.execute(named).scalar()
    if author_id is None:
        return Condition(false())
    return Condition(run.c.author_id == author_id, select(run.c.id).where(run.c.author_id == author_id))


def _in_projects(connection: Connection, numbers: list[int], indexed: bool) -> Condition:
    if not numbers:
        return Condition(false())
    if indexed and len(numbers) == 1:
        return Condition(run.c.project_id == numbers[0])
    return _of_projects(connection, numbers)


def _of_projects(connection: Connection, numbers: Iterable[int]) -> Condition:
    # The `+ 0` keeps SQLite from scanning all runs of the projects if counting showed that there are many.
    check = among(connection, run.c.project_id + literal(0), numbers)
    return Condition(check, select(run.c.id).where(among(connection, run.c.project_id, numbers)))


def _readable(connection: Connection, readable: ReadableRuns, deleted: bool) -> Condition:
    if deleted:
        return Condition(_readable_trash(connection, readable))
    of_projects = _of_projects(connection, readable.projects)
    if readable.run_id is None:
        return of_projects
    return Condition(or_(run.c.id == readable.run_id, of_projects.check))


def _readable_trash(connection: Connection, readable: ReadableRuns) -> ColumnElement[bool]:
    whole = among(connection, run.c.project_id, readable.trash)
    if readable.author_id is not None:
        own: ColumnElement[bool] = run.c.author_id == readable.author_id
    elif readable.service_account_id is not None:
        own = and_(run.c.author_id.is_(None), run.c.service_account_id == readable.service_account_id)
    else:
        return whole
    return or_(whole, and_(among(connection, run.c.project_id, readable.own_trash), own))


def compared(operand: ColumnElement[Any], operator: str, value: object) -> ColumnElement[bool]:
    return operand.op(operator, is_comparison=True)(value)  # our operators are those of SQL


def _predicate(predicate: Predicate, number: int | None) -> Condition:
    value = predicate.scalar
    if not is_field(predicate.field):
        shown = value.number if value.kind == NUMBER else plain_text(str(predicate.value))
        return Condition(compared(COLUMNS[predicate.field], predicate.operator, shown))
    if number is None:  # a field that no run has
        return Condition(false())
    conditions = [run_field.c.field_id == number, run_field.c.kind == value.kind]
    if value.kind == NUMBER:
        conditions.append(compared(run_field.c.number, predicate.operator, value.number))
    else:
        conditions += [run_field.c.number == 0.0, compared(run_field.c.text, predicate.operator, value.text)]
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


def _text(connection: Connection, words: list[str]) -> Condition:
    text = select(run_text.c.text).where(run_text.c.run_id == run.c.id).correlate(run).scalar_subquery()
    if connection.dialect.name == "sqlite":
        check = and_(*(func.instr(text, word) > 0 for word in words))
        return Condition(check, _sqlite_listing(words), exact=False)
    check = and_(*(func.strpos(text, word) > 0 for word in words))
    if all(len(word) < 3 for word in words):  # PostgreSQL's index needs at least three characters
        return Condition(check)
    found = (run_text.c.text.contains(word, autoescape=True) for word in words)
    return Condition(check, select(run_text.c.run_id).where(*found))


def _sqlite_listing(words: list[str]) -> Select[Any]:
    """The runs whose texts contain some trigrams of the words, chosen to cover most characters."""
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
