"""Which runs the panels of a report show, for one reader."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import anyio
from cachetools import LRUCache

from runvitals.journal.paths import check_run_id
from runvitals.model.filter import Filter, Labelled, ReadableRuns, Term, TextPattern
from runvitals.model.filter_text import parse
from runvitals.model.run_groups import grouped_by
from runvitals.model.run_sort import RunSort
from runvitals.server.charts.overlay.group_members import GroupMembers, group_runs
from runvitals.server.charts.overlay.plan import MetricNames
from runvitals.server.charts.overlay.run_reading import RunReading
from runvitals.server.library.run_library import Library, NamedRun

MAX_GROUPS: Final = 50
"""Of one run set."""
_NEWEST: Final = "-started_ms"
_KEPT: Final = 100
_KEPT_MS: Final = 2000
"""The panels of a page that are requested together share what was found this lately."""


@dataclass(frozen=True, slots=True)
class PanelRunSet:
    """The runs that panels show, as a report names them.

    Attributes:
        runs: ids of chosen runs; None: those that the filter selects.
        hidden: ids of runs that are left out.
        colors: places in the palette by run id.
    """

    id: str
    entity: str
    project: str
    filter: str = ""
    group: tuple[str, ...] = ()
    sort: str = ""
    limit: int = 10
    runs: tuple[str, ...] | None = None
    hidden: frozenset[str] = frozenset()
    colors: Mapping[str, int] = field(default_factory=dict, hash=False, compare=False)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> PanelRunSet:
        """Return a run set as documents store it."""
        chosen = stored.get("runs")
        return cls(
            stored["id"],
            stored["entity"],
            stored["project"],
            stored.get("filter", ""),
            tuple(stored.get("group", ())),
            stored.get("sort", ""),
            stored.get("limit", 10),
            None if chosen is None else tuple(dict.fromkeys(chosen)),
            frozenset(stored.get("hidden", ())),
            stored.get("colors", {}),
        )


class PanelProject(NamedTuple):
    """A project under its present name."""

    id: int
    entity: str
    project: str


ProjectFinder = Callable[[str, str], "PanelProject | None"]
"""Returns the project of an entity with this name, which may be a former one; None: there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class ShownRuns:
    """The runs of a run set that a reader may read. It equals itself alone.

    Attributes:
        project: None: it may not be read, or there is none.
        project_filter: the project, with what may be read of it.
        runs: with groups, all that are in them.
        missing: how many of the chosen runs there are no more.
        groups: of runs with the same values; empty if the run set does not combine runs.
        metrics: what the runs recorded.
    """

    project: PanelProject | None = None
    project_filter: Filter = field(default_factory=Filter)
    run_filter: Filter = field(default_factory=Filter)
    runs: tuple[NamedRun, ...] = ()
    missing: int = 0
    groups: tuple[GroupMembers, ...] = ()
    metrics: MetricNames = field(default_factory=MetricNames)


class KeptRunSets:
    """Keeps the runs of run sets for a moment, so that the panels of a page look them up once.

    Args:
        now_ms: the time, ms UTC.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._kept: LRUCache[Hashable, tuple[int, ShownRuns]] = LRUCache(_KEPT)
        self._locks: WeakValueDictionary[Hashable, anyio.Lock] = WeakValueDictionary()

    async def shown_runs(
        self,
        library: Library,
        run_set: PanelRunSet,
        readable: ReadableRuns | None,
        find_project: ProjectFinder,
    ) -> ShownRuns:
        """Return the runs of a run set that may be read.

        Raises:
            ValueError: its filter, sort order or grouping is invalid.
        """
        key = (replace(run_set, id=""), readable)
        lock = self._locks.setdefault(key, anyio.Lock())
        async with lock:  # of panels that are requested together, one looks the runs up
            kept = self._kept.get(key)
            if kept is not None and 0 <= self._now_ms() - kept[0] < _KEPT_MS:
                return kept[1]
            project = await anyio.to_thread.run_sync(find_project, run_set.entity, run_set.project)
            runs = ShownRuns()
            if project is not None and (readable is None or project.id in readable.projects):
                runs = await _find(library, run_set, project, readable)
            self._kept[key] = self._now_ms(), runs
            return runs


async def _find(
    library: Library, run_set: PanelRunSet, project: PanelProject, readable: ReadableRuns | None
) -> ShownRuns:
    project_filter = Filter(project=project.project, entity=project.entity, readable=readable)
    run_filter = replace(project_filter, terms=_terms(run_set))
    missing = 0
    groups: tuple[GroupMembers, ...] = ()
    if run_set.runs == ():
        return ShownRuns(project, project_filter)
    if run_set.group:
        by = tuple(map(grouped_by, run_set.group))
        grouped = await group_runs(library, run_filter, by)
        visible_groups = [_without(group, run_set.hidden) for group in grouped.groups]
        groups = tuple(group for group in visible_groups if group.runs)[: min(run_set.limit, MAX_GROUPS)]
        members = {run for group in groups for run in group.runs}
        runs = await library.named([run for run in grouped.ids if run in members], project_filter)
    elif run_set.runs is not None:
        ids = [run for run in run_set.runs if run not in run_set.hidden]
        runs = await library.named([run for run in ids if _can_be_id(run)], project_filter)
        missing = len(ids) - len(runs)
    else:
        runs = await library.named(await _matching(library, run_set, run_filter), project_filter)
    metrics = MetricNames()
    await RunReading(runs).each(lambda run, view: metrics.add(view), quick=True)
    return ShownRuns(project, project_filter, run_filter, tuple(runs), missing, groups, metrics)


def _terms(run_set: PanelRunSet) -> tuple[Term, ...]:
    if run_set.runs is None:
        return parse(run_set.filter)
    return (Term(Labelled("id", tuple(TextPattern(run) for run in run_set.runs))),)


def _without(group: GroupMembers, hidden: frozenset[str]) -> GroupMembers:
    return replace(group, runs=tuple(run for run in group.runs if run not in hidden))


async def _matching(library: Library, run_set: PanelRunSet, run_filter: Filter) -> Sequence[str]:
    """Return the ids of the first runs that match."""
    sort = RunSort.parse(run_set.sort or _NEWEST)
    count = run_set.limit + len(run_set.hidden)
    page = await library.page(run_filter, sort, count, None, lambda key: False)
    return [run.id for run in page.runs if run.id not in run_set.hidden][: run_set.limit]


def _can_be_id(text: str) -> bool:
    try:
        check_run_id(text)
    except ValueError:
        return False
    return True
