"""Converts the terms of a filter text to SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, false, func, or_, select, true, union

from runvitals.base.regular_expressions import finder
from runvitals.model.fields import TEXT
from runvitals.model.filter import (
    AllOf,
    AnyOf,
    FieldComparison,
    FieldMatch,
    HasField,
    Label,
    Labelled,
    TagCount,
    Term,
    TextPattern,
    Words,
    ascii_lower,
)
from runvitals.model.names import plain_text
from runvitals.model.state import STATES
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import (
    device,
    field,
    project,
    run,
    run_device,
    run_field,
    run_note,
    run_tag,
    writer,
)
from runvitals.server.database.tables.sweeps import sweep, sweep_run
from runvitals.server.runs.storage.filter_conditions import (
    Condition,
    compares,
    has_words,
    in_states,
    of_projects,
)
from runvitals.server.runs.storage.filter_regexes import field_found, label_found

MAX_WORD = 200
"""Characters of a text that a search matches."""
_GLOB_SPECIAL = str.maketrans({"[": "[[]", "?": "[?]"})
_LIKE_SPECIAL = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def term_condition(
    connection: Connection, term: Term, numbers: Mapping[str, int], now_ms: int, among: Collection[int] | None
) -> Condition:
    """Return the runs that a term selects.

    Args:
        numbers: the ids of fields, by name.
        among: the projects whose runs are searched by regular expressions; None: all.
    """
    condition = _condition(connection, term, numbers, now_ms, among)
    if not term.negated:
        return condition
    # A comparison with a missing value is null, not false.
    return Condition(~func.coalesce(condition.check, false()))


def _condition(
    connection: Connection, term: Term, numbers: Mapping[str, int], now_ms: int, among: Collection[int] | None
) -> Condition:
    condition = term.condition
    if isinstance(condition, (AnyOf, AllOf)):
        parts = [term_condition(connection, part, numbers, now_ms, among) for part in condition.terms]
        if isinstance(condition, AnyOf):
            return _any_of(parts)
        return Condition(and_(true(), *(part.check for part in parts)))
    if isinstance(condition, Words):
        return has_words(connection, [plain_text(condition.text).casefold().strip()[:MAX_WORD]])
    if isinstance(condition, HasField):
        return _has_field(connection, condition.field)
    if isinstance(condition, TagCount):
        tags = select(func.count()).select_from(run_tag).where(run_tag.c.run_id == run.c.id).correlate(run)
        return Condition(tags.scalar_subquery() == condition.count)
    if isinstance(condition, Labelled):
        return _has_label(connection, condition, now_ms, among)
    assert isinstance(condition, FieldComparison)
    return _any_of(
        [
            _matches_field(connection, comparison, numbers.get(plain_text(comparison.field)), among)
            if isinstance(comparison, FieldMatch)
            else compares(comparison, numbers.get(plain_text(comparison.field)))
            for comparison in condition.alternatives
        ]
    )


def _has_label(
    connection: Connection, condition: Labelled, now_ms: int, among: Collection[int] | None
) -> Condition:
    expressions = [pattern.text for pattern in condition.patterns if pattern.kind == "regex"]
    if condition.label == "state":
        states = {pattern.text for pattern in condition.patterns if pattern.kind != "regex"}
        states |= {state for state in STATES for expression in expressions if finder(expression)(state)}
        return in_states(states, now_ms) if states else Condition(false())
    plain_patterns = tuple(pattern for pattern in condition.patterns if pattern.kind != "regex")
    conditions = [label_found(connection, condition.label, expression, among) for expression in expressions]
    if plain_patterns:
        conditions.append(_OF_LABEL[condition.label](connection, plain_patterns))
    return _any_of(conditions)


def _has_field(connection: Connection, name: str) -> Condition:
    """Return the condition for runs with a field of this name, or one within it.

    `config.optimizer.lr` lies within `config.optimizer`.
    """
    plain = plain_text(name)
    within = and_(field.c.name >= f"{plain}.", field.c.name < f"{plain}/")  # "/" comes after "."
    field_ids = (
        connection.execute(select(field.c.id).where(or_(field.c.name == plain, within))).scalars().all()
    )
    having = select(run_field.c.run_id).where(run_field.c.field_id.in_(field_ids)).distinct()
    return _of_run(having, run_field.c.run_id, indexed=True)


def _any_of(conditions: Sequence[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    check = or_(false(), *(condition.check for condition in conditions))
    listings = [condition.listing for condition in conditions if condition.listing is not None]
    if len(listings) < len(conditions) or not listings:
        return Condition(check)
    return Condition(check, _union(listings), all(condition.exact for condition in conditions))


def _union(listings: Iterable[Select[Any]]) -> Select[Any]:
    return select(union(*listings).subquery())


def matches_any(
    connection: Connection, column: ColumnElement[str], patterns: Sequence[TextPattern], folds: bool = False
) -> ColumnElement[bool]:
    """Return whether a column matches one of the patterns.

    Args:
        folds: globs and substrings ignore the case of A to Z.
    """
    exact = [plain_text(pattern.text) for pattern in patterns if pattern.kind == "exact"]
    conditions: list[ColumnElement[bool]] = [column.in_(exact)] if exact else []
    conditions += [_like(connection, column, part, folds) for part in patterns if part.kind != "exact"]
    return or_(*conditions)


def _like(
    connection: Connection, column: ColumnElement[str], pattern: TextPattern, folds: bool
) -> ColumnElement[bool]:
    """Both databases give up at the first `*` that finds nothing, so no pattern takes exponential time."""
    text = plain_text(pattern.text)
    if not folds and connection.dialect.name == "sqlite":  # its LIKE ignores case
        return column.op("GLOB", is_comparison=True)(text.translate(_GLOB_SPECIAL))
    escaped = (ascii_lower(text) if folds else text).translate(_LIKE_SPECIAL)
    like = f"%{escaped}%" if pattern.kind == "substring" else escaped.replace("*", "%")
    return (func.lower(column) if folds else column).like(like, escape="\\")


def _all_exact(patterns: Iterable[TextPattern]) -> bool:
    return all(pattern.kind == "exact" for pattern in patterns)


def _of_run(runs: Select[Any], of_run: ColumnElement[int], indexed: bool) -> Condition:
    """Return runs that a query lists by the column `of_run`.

    Args:
        indexed: whether the query finds them by an index.
    """
    return Condition(exists(runs.where(of_run == run.c.id).correlate(run)), runs if indexed else None)


def _by_tag(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    tagged = select(run_tag.c.run_id).where(matches_any(connection, run_tag.c.tag, patterns)).distinct()
    return _of_run(tagged, run_tag.c.run_id, _all_exact(patterns))


def _by_host(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    on_host = select(writer.c.run_id).where(matches_any(connection, writer.c.host, patterns)).distinct()
    return _of_run(on_host, writer.c.run_id, _all_exact(patterns))


def _by_note(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    noted = select(run_note.c.run_id).where(matches_any(connection, run_note.c.text, patterns, folds=True))
    return _of_run(noted, run_note.c.run_id, indexed=True)  # few runs have notes


def _by_device(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    matches = matches_any(connection, device.c.identity, patterns)
    using = (
        select(run_device.c.run_id)
        .join(device, device.c.id == run_device.c.device_id)
        .where(matches, func.coalesce(run_device.c.used, true()))
        .distinct()
    )
    return _of_run(using, run_device.c.run_id, _all_exact(patterns))


def _by_sweep(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    theirs = (
        select(sweep_run.c.run_id)
        .join(sweep, sweep.c.id == sweep_run.c.sweep_id)
        .where(matches_any(connection, sweep.c.name, patterns), sweep_run.c.run_id.is_not(None))
        .distinct()
    )
    return _of_run(theirs, sweep_run.c.run_id, _all_exact(patterns))


def _by_finding(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    having = select(finding.c.run_id).where(matches_any(connection, finding.c.rule, patterns)).distinct()
    return _of_run(having, finding.c.run_id, indexed=_all_exact(patterns))


def _by_verdict(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    judged = select(judgement.c.run_id).where(matches_any(connection, judgement.c.verdict, patterns))
    return _of_run(judged, judgement.c.run_id, indexed=_all_exact(patterns))


def _by_project(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    statement = select(project.c.id).where(matches_any(connection, project.c.name, patterns))
    return of_projects(connection, connection.execute(statement).scalars().all())


def _by_entity(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    owned = (
        select(project.c.id)
        .join(entity, entity.c.id == project.c.entity_id)
        .where(matches_any(connection, entity.c.name, patterns))
    )
    return of_projects(connection, connection.execute(owned).scalars().all())


def _by_user(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
    user_ids = (
        select(user_account.c.id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(matches_any(connection, entity.c.name, patterns), user_account.c.deleted_ms.is_(None))
    )
    authors = run.c.author_id.in_(user_ids)
    return Condition(authors, select(run.c.id).where(authors))


def _by_column(
    column: ColumnElement[str], indexed: bool = False, folds: bool = False
) -> Callable[[Connection, Sequence[TextPattern]], Condition]:
    def condition(connection: Connection, patterns: Sequence[TextPattern]) -> Condition:
        matches = matches_any(connection, column, patterns, folds)
        return Condition(
            matches, select(run.c.id).where(matches) if indexed and _all_exact(patterns) else None
        )

    return condition


_OF_LABEL: Mapping[Label, Callable[[Connection, Sequence[TextPattern]], Condition]] = {
    "tag": _by_tag,
    "host": _by_host,
    "project": _by_project,
    "entity": _by_entity,
    "user": _by_user,
    "group": _by_column(run.c.group_name),
    "job_type": _by_column(run.c.job_type),
    "id": _by_column(run.c.uid, indexed=True),
    "name": _by_column(run.c.name, indexed=True, folds=True),
    "note": _by_note,
    "device": _by_device,
    "sweep": _by_sweep,
    "finding": _by_finding,
    "verdict": _by_verdict,
}


def _matches_field(
    connection: Connection, match: FieldMatch, number: int | None, among: Collection[int] | None
) -> Condition:
    """Return runs with a text in a field that matches a pattern."""
    if number is None:  # a field that no run has
        return Condition(false())
    if match.pattern.kind == "regex":
        return field_found(connection, number, match.pattern.text, among)
    is_text = and_(run_field.c.field_id == number, run_field.c.kind == TEXT, run_field.c.number == 0.0)
    matches = select(run_field.c.run_id).where(
        is_text, matches_any(connection, run_field.c.text, [match.pattern])
    )
    return _of_run(matches, run_field.c.run_id, indexed=True)
