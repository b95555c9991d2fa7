"""Converts filters to SQL. Each condition has two forms: a list of the matching runs, and a check of one run.

Which one is faster depends on how many runs match. Few: list them through an index and look only at those.
Many: scan the runs in the requested order and check each, which fills a page quickly. Databases estimate this
from statistics, and are wrong for unevenly distributed values. So each condition is counted first, up to a
limit (0.1 µs per run, 0.6 µs for text), and the counts decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, exists, false, func, or_, select

from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.names import plain_text
from runvitals.server.database.database import among, ids_of
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.runs import field as field_table
from runvitals.server.database.tables.runs import project, run, run_tag
from runvitals.server.runs.storage.filter_conditions import (
    Condition,
    compares,
    has_words,
    in_states,
    of_projects,
    with_device,
)
from runvitals.server.runs.storage.filter_terms import MAX_WORD, term_condition

FEW = 10_000
"""Up to this many runs are always listed: they cost 2 µs each, however the conditions correlate."""
COUNTED = 30_000
"""Where counting stops. A condition matched by this many runs is never listed."""
MAX_WORDS = 20
"""Words that a search matches."""


class FilterPlan(NamedTuple):
    """How to find runs: the condition to check, and whether a list of runs is part of it."""

    where: list[ColumnElement[bool]]
    listed: bool


def plan(
    connection: Connection,
    run_filter: Filter,
    now_ms: int,
    needed: int | None,
    project_indexed: bool = True,
    also: Sequence[Condition] = (),
) -> FilterPlan:
    """Plan the query for a filter.

    Args:
        needed: how many runs are wanted, in the order of an index; None: all runs, or another order.
        project_indexed: whether that index starts with the project.
        also: conditions besides the filter.
    """
    conditions = [*_conditions(connection, run_filter, now_ms, project_indexed), *also]
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
        return FilterPlan([condition.check for condition in conditions], listed=False)
    other_checks = [
        condition.check for condition in conditions if condition is not driver or not condition.exact
    ]
    return FilterPlan([run.c.id.in_(driver.listing), *other_checks], listed=True)


def _conditions(
    connection: Connection, run_filter: Filter, now_ms: int, project_indexed: bool
) -> Iterator[Condition]:
    yield Condition(run.c.deleted_ms.is_not(None) if run_filter.deleted else run.c.deleted_ms.is_(None))
    if run_filter.states:
        yield in_states(run_filter.states, now_ms)
    projects = _project_ids(connection, run_filter)
    if projects is not None:
        yield _in_projects(connection, projects, project_indexed)
    readable = run_filter.readable
    if readable is not None and (
        projects is None or run_filter.deleted or not readable.projects.issuperset(projects)
    ):
        yield _readable(connection, readable, run_filter.deleted)
    if run_filter.author is not None:
        yield _by_author(connection, run_filter.author)
    numbers = ids_of(connection, field_table.c.name, {plain_text(name) for name in run_filter.fields})
    for predicate in run_filter.where:
        yield compares(predicate, numbers.get(plain_text(predicate.field)))
    for tag in run_filter.tags:
        tagged = select(run_tag.c.run_id).where(run_tag.c.tag == plain_text(tag))
        yield Condition(exists(tagged.where(run_tag.c.run_id == run.c.id).correlate(run)), tagged)
    if run_filter.device is not None:
        yield with_device(run_filter.device)
    words = plain_text(run_filter.text).casefold().split()[:MAX_WORDS]
    if words:
        yield has_words(connection, [word[:MAX_WORD] for word in words])
    for term in run_filter.terms:
        yield term_condition(connection, term, numbers, now_ms, projects)


def _project_ids(connection: Connection, run_filter: Filter) -> list[int] | None:
    """Return the projects that a filter names; None if it names neither a project nor an entity."""
    statement = select(project.c.id)
    if run_filter.project is not None:
        statement = statement.where(project.c.name == plain_text(run_filter.project))
    if run_filter.entity is not None:
        statement = statement.join(entity, entity.c.id == project.c.entity_id)
        statement = statement.where(entity.c.name == plain_text(run_filter.entity))
    if run_filter.project is None and run_filter.entity is None:
        return None
    return list(connection.execute(statement).scalars())


def _by_author(connection: Connection, name: str) -> Condition:
    statement = (
        select(user_account.c.id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(entity.c.name == plain_text(name), user_account.c.deleted_ms.is_(None))
    )
    author_id = connection.execute(statement).scalar()
    if author_id is None:
        return Condition(false())
    return Condition(run.c.author_id == author_id, select(run.c.id).where(run.c.author_id == author_id))


def _in_projects(connection: Connection, numbers: list[int], indexed: bool) -> Condition:
    if not numbers:
        return Condition(false())
    if indexed and len(numbers) == 1:
        return Condition(run.c.project_id == numbers[0])
    return of_projects(connection, numbers)


def _readable(connection: Connection, readable: ReadableRuns, deleted: bool) -> Condition:
    if deleted:
        return Condition(_readable_trash(connection, readable))
    in_projects = of_projects(connection, readable.projects)
    if readable.run_id is None:
        return in_projects
    return Condition(or_(run.c.id == readable.run_id, in_projects.check))


def _readable_trash(connection: Connection, readable: ReadableRuns) -> ColumnElement[bool]:
    whole = among(connection, run.c.project_id, readable.trash)
    if readable.author_id is not None:
        own: ColumnElement[bool] = run.c.author_id == readable.author_id
    elif readable.service_account_id is not None:
        own = and_(run.c.author_id.is_(None), run.c.service_account_id == readable.service_account_id)
    else:
        return whole
    return or_(whole, and_(among(connection, run.c.project_id, readable.own_trash), own))
