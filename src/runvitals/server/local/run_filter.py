"""Filters and orders of the catalogue, applied to runs in memory: a machine's own journals are few."""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runvitals.model import fields
from runvitals.model.device import devices_of
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.filter import Filter, Predicate, is_field
from runvitals.model.run import Run
from runvitals.model.run_sort import RunSort
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
_Place = tuple[int, Any, str]
"""Kind of the value (numbers, texts, none), the value, the run's id."""


def matching(runs: Iterable[Run], wanted: Filter) -> list[Run]:
    """Those of the runs for which all of a filter holds, in their order."""
    return [run for run in runs if _matches(run, wanted)]


def _matches(run: Run, wanted: Filter) -> bool:
    if wanted.deleted or wanted.project not in (None, run.project):
        return False
    if wanted.states and run.state not in wanted.states:
        return False
    if not set(wanted.tags).issubset(run.tags):
        return False
    if not all(_holds(run, predicate) for predicate in wanted.where):
        return False
    if wanted.device is not None and not _has_device(run, wanted.device):
        return False
    words = wanted.text.casefold().split()
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


def ordered(runs: Iterable[Run], sort: RunSort) -> list[tuple[_Place, Run]]:
    """The runs in an order, each with its place: numbers before texts, what has no value last."""
    placed = [(_place(run, sort), run) for run in runs]
    found: list[tuple[_Place, Run]] = []
    for kind in range(_MISSING + 1):
        of_kind = sorted((one for one in placed if one[0][0] == kind), key=lambda one: one[0][2])
        # Sorting is stable: of runs with equal values the first by id stays first, in both directions.
        found += sorted(of_kind, key=lambda one: one[0][1], reverse=sort.descending or kind == _MISSING)
    return found


def _place(run: Run, sort: RunSort) -> _Place:
    value = _value(run, sort.by)
    if value is None:
        return _MISSING, run.started_ms, run.id
    return value.kind, value.number if value.kind == NUMBER else value.text, run.id


def after_place(placed: Sequence[tuple[_Place, Run]], sort: RunSort, after: str) -> list[tuple[_Place, Run]]:
    """What comes after the place at which a page ended, whether or not that run is still there.

    Raises:
        ValueError: no page of this order gave it.
    """
    end = _read_cursor(sort, after)
    return [one for one in placed if _comes_after(one[0], end, sort.descending)]


def _comes_after(place: _Place, end: _Place, descending: bool) -> bool:
    if place[0] != end[0]:
        return place[0] > end[0]
    if place[1] == end[1]:
        return place[2] > end[2]
    before: bool = place[1] < end[1]
    return before if descending or place[0] == _MISSING else not before


def cursor(sort: RunSort, place: _Place) -> str:
    """Where a page ends, to be given as `after`."""
    text = json.dumps([sort.by, sort.descending, *place])
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def _read_cursor(sort: RunSort, after: str) -> _Place:
    no_cursor = ValueError(f"invalid after={after!r}; expected the `next` of a previous page")
    try:
        text = base64.urlsafe_b64decode(after + "=" * (-len(after) % 4))
        by, descending, kind, value, run_id = json.loads(text)
    except (ValueError, TypeError):  # not base64, not JSON, not five values
        raise no_cursor from None
    if [by, descending] != [sort.by, sort.descending]:
        raise ValueError(
            f"after={after!r} belongs to a list sorted by {by}; use the same order for every page"
        )
    is_text = kind == fields.TEXT
    if kind not in (NUMBER, fields.TEXT, _MISSING) or not isinstance(run_id, str):
        raise no_cursor
    if isinstance(value, bool) or not isinstance(value, str if is_text else (int, float)):
        raise no_cursor
    return kind, value, run_id
