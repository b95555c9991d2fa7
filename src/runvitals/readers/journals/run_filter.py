"""Filters and sort orders of the metadata store, applied to runs in memory: one machine has few runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runvitals.base.regular_expressions import finder
from runvitals.model import fields
from runvitals.model.device import devices_of
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.filter import (
    AllOf,
    AnyOf,
    FieldComparison,
    FieldMatch,
    Filter,
    HasField,
    Labelled,
    Predicate,
    TagCount,
    Term,
    TextPattern,
    Words,
    ascii_lower,
    is_field,
)
from runvitals.model.run import Run
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.model.run_verdict import FINDING_FIELDS
from runvitals.model.search_text import MAX_NOTES, search_text
from runvitals.model.system_statistics import is_statistic
from runvitals.readers.journals.globs import star_glob

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MISSING = 2
_NONE: Mapping[str, Mapping[str, float]] = {}
_SortKey = tuple[Any, ...]
"""For each part of the order the kind of the value (number, text, missing) and the value; then the run's
id."""
SystemStatistics = Mapping[str, Mapping[str, float]]
"""The system statistics of runs by run id and field, such as `system.gpu`."""


def matching(runs: Iterable[Run], run_filter: Filter, statistics: SystemStatistics = _NONE) -> list[Run]:
    """Return the runs that match a filter, in the same order."""
    return [run for run in runs if _matches(run, run_filter, statistics)]


def _matches(run: Run, run_filter: Filter, statistics: SystemStatistics) -> bool:
    if run_filter.deleted != (run.deleted_ms is not None) or run_filter.project not in (None, run.project):
        return False
    if run_filter.entity is not None or run_filter.author is not None:  # a journal has neither
        return False
    if run_filter.states and run.state not in run_filter.states:
        return False
    if not set(run_filter.tags).issubset(run.tags):
        return False
    if not all(_holds(run, predicate, statistics) for predicate in run_filter.where):
        return False
    if not all(_meets(run, term, statistics) for term in run_filter.terms):
        return False
    if run_filter.device is not None and not _has_device(run, run_filter.device):
        return False
    words = run_filter.text.casefold().split()
    return not words or _has_words(run, words)


def _meets(run: Run, term: Term, statistics: SystemStatistics) -> bool:
    """Return whether a term holds."""
    return _holds_of(run, term.condition, statistics) != term.negated


def _holds_of(run: Run, condition: Any, statistics: SystemStatistics) -> bool:
    if isinstance(condition, AnyOf):
        return any(_meets(run, term, statistics) for term in condition.terms)
    if isinstance(condition, AllOf):
        return all(_meets(run, term, statistics) for term in condition.terms)
    if isinstance(condition, HasField):
        return _has_field(run, condition.field, statistics)
    if isinstance(condition, TagCount):
        return len(run.tags) == condition.count
    if isinstance(condition, Words):
        return condition.text.casefold().strip() in _text_of(run)
    if isinstance(condition, Labelled):
        folds = condition.label in ("name", "note")
        return any(
            _matches_pattern(text, pattern, folds)
            for text in _labels(run, condition)
            for pattern in condition.patterns
        )
    assert isinstance(condition, FieldComparison)
    return any(
        _matches_field(run, term) if isinstance(term, FieldMatch) else _holds(run, term, statistics)
        for term in condition.alternatives
    )


def _labels(run: Run, condition: Labelled) -> list[str]:
    """Return the texts of a label of a run."""
    of_run: dict[str, Callable[[], list[str]]] = {
        "state": lambda: [run.state],
        "tag": lambda: run.tags,
        "host": lambda: [host.name for host in run.hosts],
        "project": lambda: [run.project],
        "entity": lambda: [] if run.entity is None else [run.entity],
        "user": lambda: [] if run.author is None or run.author.name is None else [run.author.name],
        "group": lambda: [run.group or ""],
        "job_type": lambda: [run.job_type or ""],
        "id": lambda: [run.id],
        "name": lambda: [run.name],
        "note": lambda: [run.notes[:MAX_NOTES]] if run.notes else [],
        "device": lambda: _devices(run),
        "sweep": list,  # only a server runs sweeps
        "finding": lambda: [] if run.verdict is None else list(run.verdict.findings),
        "verdict": lambda: [] if run.verdict is None else [run.verdict.id],
    }
    return of_run[condition.label]()


def _matches_pattern(text: str, pattern: TextPattern, folds: bool) -> bool:
    expected = pattern.text
    if folds and pattern.kind in ("glob", "substring"):
        text, expected = ascii_lower(text), ascii_lower(expected)
    if pattern.kind == "exact":
        return text == expected
    if pattern.kind == "regex":
        return finder(pattern.text)(text)
    return expected in text if pattern.kind == "substring" else star_glob(expected)(text)


def _matches_field(run: Run, match: FieldMatch) -> bool:
    value = value_of(run, match.field, _NONE)
    return (
        value is not None and value.kind == fields.TEXT and _matches_pattern(value.text, match.pattern, False)
    )


def _has_field(run: Run, name: str, statistics: SystemStatistics) -> bool:
    if value_of(run, name, statistics) is not None:
        return True
    section = name.partition(".")[0]
    return section in fields.SECTIONS and any(
        leaf.startswith(f"{name}.") for leaf in fields.leaves(section, getattr(run, section))
    )


def _has_device(run: Run, identity: str) -> bool:
    return identity in _devices(run)


def _devices(run: Run) -> list[str]:
    return [
        device.identity
        for host, machine in run.machines.items()
        for device in devices_of(host, machine)
        if device.used is not False
    ]


def _has_words(run: Run, words: Sequence[str]) -> bool:
    text = _text_of(run)
    return all(word in text for word in words)


def _text_of(run: Run) -> str:
    about = {
        "name": run.name,
        "group": run.group,
        "job_type": run.job_type,
        "tags": run.tags,
        "notes": run.notes,
    }
    return search_text(run.id, about, run.config)


def _holds(run: Run, predicate: Predicate, statistics: SystemStatistics) -> bool:
    value, expected = value_of(run, predicate.field, statistics), predicate.scalar
    if value is None or value.kind != expected.kind:
        return False
    compare = _COMPARE[predicate.operator]
    return (
        compare(value.number, expected.number)
        if expected.kind == NUMBER
        else compare(value.text, expected.text)
    )


def value_of(run: Run, name: str, statistics: SystemStatistics) -> Scalar | None:
    """Return the value of a column or field of a run in comparable form; None if it is missing."""
    if is_statistic(name):
        return fields.scalar(statistics.get(run.id, {}).get(name))
    if name in FINDING_FIELDS:
        return None if run.verdict is None else fields.scalar(run.verdict.fields[name])
    if is_field(name):
        section = name.partition(".")[0]
        return fields.leaves(section, getattr(run, section)).get(name)
    if name == "last_ms":
        return fields.scalar(run.started_ms + run.duration_ms if run.ended_ms is None else run.ended_ms)
    if name == "author":
        return fields.scalar("" if run.author is None else run.author.name or "")
    return fields.scalar(getattr(run, name))


def sort_runs(
    runs: Iterable[Run], sort: RunSort, statistics: SystemStatistics = _NONE
) -> list[tuple[_SortKey, Run]]:
    """Return the runs in a sort order, each with its sort key: numbers before texts, missing values last."""
    placed = [(_sort_key(run, sort, statistics), run) for run in runs]
    placed.sort(key=lambda entry: entry[0][-1])
    for part, criterion in reversed(list(enumerate(sort.parts))):
        # Sorting is stable: runs with equal values stay in the order of the later parts and of their ids.
        placed.sort(key=lambda entry: _in_order(entry[0][part], criterion.descending))
    return placed


class _Reversed:
    """Compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(other.value == self.value)


def _in_order(part: tuple[int, Any], descending: bool) -> tuple[int, Any]:
    """Return the key that orders one part of a sort key; without a value, the newest first."""
    kind, value = part
    return kind, _Reversed(value) if descending or kind == _MISSING else value


def _sort_key(run: Run, sort: RunSort, statistics: SystemStatistics) -> _SortKey:
    parts: list[tuple[int, Any]] = []
    for criterion in sort.parts:
        value = value_of(run, criterion.by, statistics)
        if value is None:
            parts.append((_MISSING, 0 if sort.then else run.started_ms))
        else:
            parts.append((value.kind, value.number if value.kind == NUMBER else value.text))
    return (*parts, run.id)


def runs_after(runs: Sequence[tuple[_SortKey, Run]], sort: RunSort, after: str) -> list[tuple[_SortKey, Run]]:
    """Return the runs after the end of a page, whether or not its last run still exists.

    Raises:
        ValueError: `after` is not the `next` of a page in this sort order.
    """
    end = _position(_read_cursor(sort, after), sort)
    return [(key, run) for key, run in runs if end < _position(key, sort)]


def _position(key: _SortKey, sort: RunSort) -> tuple[Any, ...]:
    """Return the key that orders a sort key."""
    *parts, run_id = key
    order = [_in_order(part, criterion.descending) for part, criterion in zip(parts, sort.parts, strict=True)]
    return (*order, run_id)


def cursor(sort: RunSort, key: _SortKey) -> str:
    """Return the end of a page, for the `after` of the next one."""
    return encode_cursor(sort, key)


def _read_cursor(sort: RunSort, after: str) -> _SortKey:
    *parts, run_id = decode_cursor(sort, after, len(sort.parts) + 1)
    if not isinstance(run_id, str) or not all(map(_is_part, parts)):
        raise invalid_cursor(after)
    return (*map(tuple, parts), run_id)


def _is_part(part: object) -> bool:
    """Return whether a value of a cursor is a part of a sort key."""
    if not isinstance(part, list) or len(part) != 2:
        return False
    kind, value = part
    if kind == fields.TEXT:
        return isinstance(value, str)
    return kind in (NUMBER, _MISSING) and isinstance(value, (int, float)) and not isinstance(value, bool)
