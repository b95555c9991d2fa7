"""Filters and sort orders of the metadata store, applied to runs in memory: one machine has few runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runvitals.model import fields
from runvitals.model.device import devices_of
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.filter import Filter, Predicate, is_field
from runvitals.model.run import Run
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.model.search_text import search_text

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MISSING = 2
_SortKey = tuple[int, Any, str]
"""Kind of the value (number, text, missing), the value, the run's id."""


def matching(runs: Iterable[Run], run_filter: Filter) -> list[Run]:
    """The runs that match a filter, in the same order."""
    return [run for run in runs if _matches(run, run_filter)]


def _matches(run: Run, run_filter: Filter) -> bool:
    if run_filter.deleted or run_filter.project not in (None, run.project):
        return False
    if run_filter.entity is not None or run_filter.author is not None:  # a journal has neither
        return False
    if run_filter.states and run.state not in run_filter.states:
        return False
    if not set(run_filter.tags).issubset(run.tags):
        return False
    if not all(_holds(run, predicate) for predicate in run_filter.where):
        return False
    if run_filter.device is not None and not _has_device(run, run_filter.device):
        return False
    words = run_filter.text.casefold().split()
    return not words or _has_words(run, words)


def _has_device(run: Run, identity: str) -> bool:
    return any(
        device.identity == identity and device.used is not False
        for host, machine in run.machines.items()
        for device in devices_of(host, machine)
    )


def _has_words(run: Run, words: Sequence[str]) -> bool:
    about = {
        "name": run.name,
        "group": run.group,
        "job_type": run.job_type,
        "tags": run.tags,
        "notes": run.notes,
    }
    text = search_text(run.id, about, run.config)
    return all(word in text for word in words)


def _holds(run: Run, predicate: Predicate) -> bool:
    value, wanted = _value(run, predicate.field), predicate.scalar
    if value is None or value.kind != wanted.kind:
        return False
    compare = _COMPARE[predicate.operator]
    return compare(value.number, wanted.number) if wanted.kind == NUMBER else compare(value.text, wanted.text)


def _value(run: Run, name: str) -> Scalar | None:
    if is_field(name):
        section = name.partition(".")[0]
        return fields.leaves(section, getattr(run, section)).get(name)
    if name == "last_ms":
        return fields.scalar(run.started_ms + run.duration_ms if run.ended_ms is None else run.ended_ms)
    return fields.scalar(getattr(run, name))


def ordered(runs: Iterable[Run], sort: RunSort) -> list[tuple[_SortKey, Run]]:
    """The runs in a sort order, each with its sort key: numbers before texts, missing values last."""
    placed = [(_sort_key(run, sort), run) for run in runs]
    found: list[tuple[_SortKey, Run]] = []
    for kind in range(_MISSING + 1):
        of_kind = sorted((entry for entry in placed if entry[0][0] == kind), key=lambda entry: entry[0][2])
        # Sorting is stable: runs with equal values stay in order of their ids, in both directions.
        found += sorted(of_kind, key=lambda entry: entry[0][1], reverse=sort.descending or kind == _MISSING)
    return found


def _sort_key(run: Run, sort: RunSort) -> _SortKey:
    value = _value(run, sort.by)
    if value is None:
        return _MISSING, run.started_ms, run.id
    return value.kind, value.number if value.kind == NUMBER else value.text, run.id


def runs_after(runs: Sequence[tuple[_SortKey, Run]], sort: RunSort, after: str) -> list[tuple[_SortKey, Run]]:
    """The runs after the end of a page, whether or not its last run still exists.

    Raises:
        ValueError: `after` is not the `next` of a page in this sort order.
    """
    end = _read_cursor(sort, after)
    return [(key, run) for key, run in runs if _comes_after(key, end, sort.descending)]


def _comes_after(place: _SortKey, end: _SortKey, descending: bool) -> bool:
    if place[0] != end[0]:
        return place[0] > end[0]
    if place[1] == end[1]:
        return place[2] > end[2]
    before: bool = place[1] < end[1]
    return before if descending or place[0] == _MISSING else not before


def cursor(sort: RunSort, key: _SortKey) -> str:
    """The end of a page, for the `after` of the next one."""
    return encode_cursor(sort, key)


def _read_cursor(sort: RunSort, after: str) -> _SortKey:
    kind, value, run_id = decode_cursor(sort, after, 3)
    is_text = kind == fields.TEXT
    if kind not in (NUMBER, fields.TEXT, _MISSING) or not isinstance(run_id, str):
        raise invalid_cursor(after)
    if isinstance(value, bool) or not isinstance(value, str if is_text else (int, float)):
        raise invalid_cursor(after)
    return kind, value, run_id
