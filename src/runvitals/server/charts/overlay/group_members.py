"""Which runs are in which group: all that match a filter, by their values."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runvitals.model.filter import Filter, is_field
from runvitals.model.run import Run
from runvitals.model.run_groups import GroupValue
from runvitals.model.run_sort import RunSort
from runvitals.server.library.run_library import Library
from runvitals.server.runs.run_lists import ShownColumns

MAX_MEMBERS = 2000
"""The newest so many runs are grouped."""
_RUNS_AT_ONCE = 500
_NEWEST_FIRST = RunSort.parse("started_ms", True)


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Runs with the same values.

    Args:
        values: in the order of what they are grouped by.
        runs: their ids.
    """

    values: tuple[GroupValue, ...]
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupedRuns:
    """The groups of runs, the largest first.

    Args:
        ids: of all runs, the newest first.
        total: how many match the filter.
    """

    groups: tuple[GroupMembers, ...]
    ids: tuple[str, ...]
    total: int


async def group_runs(library: Library, run_filter: Filter, by: Sequence[str]) -> GroupedRuns:
    """Return the groups of the runs that match a filter. A run with several tags or hosts is in several."""
    shown_columns = ShownColumns(tuple(name for name in by if is_field(name)))
    members: defaultdict[tuple[GroupValue, ...], list[str]] = defaultdict(list)
    ids: list[str] = []
    after, total = None, 0
    while len(ids) < MAX_MEMBERS:
        page = await library.page(run_filter, _NEWEST_FIRST, _RUNS_AT_ONCE, after, _nothing, shown_columns)
        total = page.total
        for run, columns in zip(page.runs, page.columns, strict=True):
            ids.append(run.id)
            for values in itertools.product(*(_values(run, columns, name) for name in by)):
                members[values].append(run.id)
        after = page.next
        if after is None:
            break
    groups = [GroupMembers(values, tuple(runs)) for values, runs in members.items()]
    groups.sort(key=lambda group: (-len(group.runs), _sort_key(group.values)))
    return GroupedRuns(tuple(groups), tuple(ids), total)


def _nothing(key: str) -> bool:
    return False


def _values(run: Run, columns: Mapping[str, GroupValue], name: str) -> Sequence[GroupValue]:
    if is_field(name):
        return [columns.get(name)]
    if name == "tag":
        return list(dict.fromkeys(run.tags)) or [None]
    if name == "host":
        return sorted({host.name for host in run.hosts}) or [None]
    if name == "user":
        return [None if run.author is None else run.author.name or None]
    return [getattr(run, name) or None]


def _sort_key(values: Sequence[GroupValue]) -> list[tuple[bool, bool, float, str]]:
    return [
        (value is None, isinstance(value, str), value if isinstance(value, float) else 0.0, str(value))
        for value in values
    ]
