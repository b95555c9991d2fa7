"""The runs of a data folder's journals. However many pages show a run, its journal is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import anyio
from starlette.concurrency import run_in_threadpool

from runvitals.model import fields
from runvitals.model.completion import FieldChoice
from runvitals.model.errors import UnknownRun
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.run import Run
from runvitals.model.run_groups import RunGroup
from runvitals.model.run_sort import RunSort
from runvitals.model.run_verdict import FINDING_FIELDS
from runvitals.model.system_statistics import is_statistic
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.run_filter import (
    SystemStatistics,
    cursor,
    matching,
    runs_after,
    sort_runs,
    value_of,
)
from runvitals.readers.journals.run_groups import choices_of, groups_of
from runvitals.readers.journals.run_handle import find_run
from runvitals.readers.journals.runs import RunList
from runvitals.readers.journals.series import Series
from runvitals.readers.journals.verdicts import JournalVerdicts
from runvitals.server.hosts.fleet import fleet_of_series
from runvitals.server.hosts.hosts import FleetHost, HostReading, HostRun, fleet
from runvitals.server.http.cached_read import CachedRead
from runvitals.server.http.workers import QUICK_THREADS, THOROUGH_THREADS, Workers
from runvitals.server.library.local.hosts import host_runs, newest_runs, readings, recent_of
from runvitals.server.library.local.journal_changes import JournalChanges, in_trash
from runvitals.server.library.local.journal_run import JournalView
from runvitals.server.library.local.journal_summaries import JournalSummaries
from runvitals.server.library.local.run_edits import RunEdits
from runvitals.server.library.run_library import (
    AggregatedSeries,
    Grouping,
    LatestValues,
    NamedRun,
    RunView,
    SeriesSelection,
)
from runvitals.server.runs.run_lists import NO_COLUMNS, RunsPage, ShownColumns

T = TypeVar("T")
KEPT_BYTES = 512 * 1024 * 1024
"""Beyond this size, the columns of the least recently used runs are dropped."""
MAX_FLEET = 200
"""The most runs of one aggregate: their whole journals are read."""


class OpenedJournal:
    """A run that several requests read at the same time."""

    def __init__(self, run_id: str, directory: str, quick: Workers, thorough: Workers) -> None:
        self._quick, self._thorough = quick, thorough
        self._reader = RunReader(run_id, directory)
        self._view = JournalView(self._reader)
        self._shared = CachedRead(self._poll)

    def _poll(self) -> None:
        self._reader.poll()

    def read_again(self) -> None:
        """Have the journal be read at the next use, because something was recorded."""
        self._shared.invalidate()

    @property
    def nbytes(self) -> int:
        """The memory that it takes, estimated."""
        return self._reader.nbytes

    def version(self) -> None:
        """Unknown until the files are read."""

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """Return the result of `work`, called with an up-to-date view.

        Raises:
            UnknownRun: the run's folder was deleted.
        """
        try:
            return await self._shared.use(lambda: work(self._view), self._quick if quick else self._thorough)
        except FileNotFoundError:
            raise UnknownRun(
                f"run {self._reader.run_id!r} is gone: {self._reader.folder} was deleted"
            ) from None


class JournalLibrary(JournalChanges):
    """All runs of a data folder; a `Library` and an `EditableLibrary`.

    Args:
        directory: the data folder.
        clock: the time now, ms UTC; the states of runs depend on it.
        edited: called with the id of a run after each edit.
    """

    kind: Literal["local", "server"] = "local"

    def __init__(
        self, directory: str, clock: Callable[[], int], edited: Callable[[str], None] = lambda run_id: None
    ) -> None:
        self.directory = directory
        self.clock = clock
        self._list = RunList(directory)
        self._edits = RunEdits(directory, edited)
        self._runs: list[Run] = []
        self._trash: list[Run] = []
        self._listed = CachedRead(self._list_runs, self._list.stamp)
        self._opened: dict[str, OpenedJournal] = {}
        self._summaries = JournalSummaries(directory)
        self._verdicts = JournalVerdicts(directory)
        self._reading = anyio.Lock()
        self._quick, self._thorough = Workers(QUICK_THREADS), Workers(THOROUGH_THREADS)
        self._changing = Workers(1, goes_on=True)

    def _list_runs(self) -> None:
        self._runs, self._trash = self._list.with_trash(self.clock())

    async def in_turn(self, work: Callable[[], T]) -> T:
        """See `JournalChanges.in_turn`."""
        result = await self._listed.change(work, self._changing)
        for opened in self._opened.values():
            opened.read_again()
        return result

    async def runs(self, deleted: bool = False) -> list[Run]:
        """Return all runs, newest first.

        Args:
            deleted: those in the trash instead of the others.
        """
        return await self._listed.use(lambda: self._trash if deleted else self._runs, self._quick)

    async def projects(self, readable: ReadableRuns | None = None) -> list[dict[str, Any]]:
        """`models.ProjectSchema` for each project with runs, the one with the newest run first.

        Args:
            readable: not used; who serves journals may read all of them.
        """
        projects: dict[str, dict[str, Any]] = {}
        for run in await self.runs():
            project = projects.setdefault(
                run.project, {"name": run.project, "runs": 0, "running": 0, "newest_ms": run.started_ms}
            )
            project["runs"] += 1
            project["running"] += run.state == "running"
        return list(projects.values())

    async def page(
        self,
        run_filter: Filter,
        sort: RunSort,
        limit: int,
        after: str | None,
        last: Callable[[str], bool],
        shown: ShownColumns = NO_COLUMNS,
        skip: int = 0,
    ) -> RunsPage:
        """Return a page of the runs that match a filter."""
        field_names = {*run_filter.fields, *(part.by for part in sort.parts)}
        statistics, pending = await self._statistics(field_names)
        judged, unjudged = await self._judged(run_filter, field_names)
        pending = max(pending, unjudged)
        placed = sort_runs(matching(judged, run_filter, statistics), sort, statistics)
        total = len(placed)
        if after is not None:
            placed = runs_after(placed, sort, after)
        placed = placed[skip:]
        following = cursor(sort, placed[limit - 1][0]) if len(placed) > limit else None
        runs = [run for _, run in placed[:limit]]
        if any(name in FINDING_FIELDS for name in shown.fields):
            runs, unjudged = await self._judge(runs)
            pending = max(pending, unjudged)
        if shown.sparklines or any(map(is_statistic, shown.fields)):
            pending = max(pending, await self._read_journals(runs, shown.sparklines))
            statistics = self._summaries.statistics()
        columns = [_columns(run, shown.fields, statistics) for run in runs]
        lines = [self._summaries.sparklines(run, shown.sparklines) for run in runs]
        return RunsPage([_with_last(run, last) for run in runs], total, following, columns, lines, pending)

    async def _statistics(self, field_names: Iterable[str]) -> tuple[SystemStatistics, int]:
        """Return the system statistics of runs, if a field is one, and how many runs still lack them."""
        if not any(map(is_statistic, field_names)):
            return {}, 0
        pending = await self._read_journals(await self.runs(), ())
        return self._summaries.statistics(), pending

    async def _judged(self, run_filter: Filter, field_names: Iterable[str]) -> tuple[list[Run], int]:
        """Return all runs, with verdicts if the filter or a field needs them, and how many lack theirs."""
        runs = await self.runs(run_filter.deleted)
        if run_filter.needs_findings or any(name in FINDING_FIELDS for name in field_names):
            return await self._judge(runs)
        return self._verdicts.add_to(runs), 0

    async def _judge(self, runs: Sequence[Run]) -> tuple[list[Run], int]:
        async with self._reading:
            pending = await run_in_threadpool(self._verdicts.read, runs, self.clock())
        return self._verdicts.add_to(runs), pending

    async def _read_journals(self, runs: Sequence[Run], sparklines: Sequence[str]) -> int:
        async with self._reading:
            return await run_in_threadpool(self._summaries.read, runs, sparklines, self.clock())

    async def fields(self, run_filter: Filter) -> list[str]:
        """Return the configuration, summary and system fields of the runs that match a filter."""
        names: set[str] = set()
        statistics = self._summaries.statistics()
        for run in await self._matching(run_filter):
            names.update(fields.leaves("config", run.config), fields.leaves("summary", run.summary))
            names.update(statistics.get(run.id, ()))
        return sorted(names)

    async def named(self, ids: Sequence[str], run_filter: Filter) -> list[NamedRun]:
        """Return those of these runs that match a filter, in the requested order."""
        requested = set(ids)
        runs = matching([run for run in await self.runs() if run.id in requested], run_filter)
        runs_by_id = {
            run.id: NamedRun(
                run.id,
                run.name,
                run.state,
                run.started_ms,
                run.started_ms + run.duration_ms,
                await self.open(run.id),
            )
            for run in runs
        }
        return [runs_by_id[run_id] for run_id in dict.fromkeys(ids) if run_id in runs_by_id]

    async def choices(self, run_filter: Filter) -> list[FieldChoice]:
        """Return what a filter of these runs can name, with frequent values."""
        return choices_of(await self._matching(run_filter))

    async def groups(
        self, run_filter: Filter, by: tuple[str, ...], columns: tuple[str, ...]
    ) -> list[RunGroup]:
        """Return the groups of the runs that match a filter, unordered, or raise TooManyGroups."""
        field_names = (*run_filter.fields, *by, *columns)
        statistics, _ = await self._statistics(field_names)
        runs, _ = await self._judged(run_filter, field_names)
        matching_runs = matching(runs, run_filter, statistics)
        return groups_of(matching_runs, by, columns, statistics)

    async def _matching(self, run_filter: Filter) -> list[Run]:
        statistics, _ = await self._statistics(run_filter.fields)
        runs, _ = await self._judged(run_filter, ())
        return matching(runs, run_filter, statistics)

    async def open(self, run_id: str, number: int | None = None) -> OpenedJournal:
        """Return a run by its full id.

        Args:
            number: not used; journals have none.

        Raises:
            UnknownRun: there is no such run.
        """
        if any(run.id == run_id for run in await self.runs(deleted=True)):
            raise in_trash(run_id)
        opened = self._opened.pop(run_id, None)
        if opened is None:
            await run_in_threadpool(self._check, run_id)
            opened = self._opened.pop(run_id, None) or OpenedJournal(
                run_id, self.directory, self._quick, self._thorough
            )
        self._opened[run_id] = opened
        self._drop_least_recent()
        return opened

    def _check(self, run_id: str) -> None:
        if find_run(run_id, self.directory) != run_id:
            raise UnknownRun(f"no run {run_id!r} in {self.directory}: the API expects a full run id")

    def _drop_least_recent(self) -> None:
        """Drop the least recently used runs. A client that follows one keeps it until it leaves."""
        kept_bytes = sum(opened.nbytes for opened in self._opened.values())
        for run_id in list(self._opened)[:-1]:
            if kept_bytes <= KEPT_BYTES:
                return
            kept_bytes -= self._opened.pop(run_id).nbytes

    async def latest(self, run_filter: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        """Return the newest sample of each host of the running runs that match a filter."""
        latest = []
        for run in await self._matching(replace(run_filter, states=("running",))):
            times = {host.name: host.last_ms for host in run.hosts}
            for host, values in run.last.items():
                newest = {key: value for key, value in values.items() if keys(key) and value == value}
                t = dict.fromkeys(newest, times.get(host, run.started_ms))
                latest.append(LatestValues(run.id, run.project, host, t, newest))
        return latest

    async def hosts(self, readable: ReadableRuns | None = None) -> list[FleetHost]:
        """Return the hosts with a record of the last 7 days."""
        runs, now_ms = await self.runs(), self.clock()
        hosts = [await self._with_recent(reading, now_ms) for reading in readings(runs)]
        return fleet(hosts, newest_runs(runs, now_ms))

    async def _with_recent(self, reading: HostReading, now_ms: int) -> HostReading:
        """Return the same with the series of the last minutes that it asks for."""
        windows = reading.windows(now_ms)
        if not windows:
            return reading
        opened = await self.open(reading.run.id)
        request, since_ms = SeriesSelection(tuple(windows), host=reading.host), now_ms - max(windows.values())
        series = await opened.use(lambda view: view.samples(request, since_ms, now_ms))
        return replace(reading, recent=recent_of(series, windows, now_ms))

    async def host_runs(
        self, host: str, t0: int, t1: int, limit: int, readable: ReadableRuns | None = None
    ) -> list[HostRun] | None:
        """Return the newest runs on a host that overlap a time range; None: there is no such host."""
        runs_on_host = [run for _, part, run in host_runs(await self.runs()) if part.name == host]
        if not runs_on_host:
            return None
        return [run for run in runs_on_host if run.last_ms >= t0 and run.started_ms <= t1][:limit]

    async def aggregate(
        self, metric: str, run_filter: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[AggregatedSeries]:
        """One metric over all runs that match a filter, from their whole journals.

        Raises:
            ValueError: more than `MAX_FLEET` runs match.
        """
        runs = [
            run
            for run in await self._matching(run_filter)
            if run.started_ms <= t1 and run.started_ms + run.duration_ms >= t0
        ]
        if len(runs) > MAX_FLEET:
            raise ValueError(
                f"{len(runs)} runs from t0 to t1; one request reads the journals of at most {MAX_FLEET}: "
                "narrow it by project, state, tag, text or time"
            )
        groups: dict[str | None, list[Series]] = {}
        for run in runs:
            opened = await self.open(run.id)
            for series in await opened.use(lambda view: view.samples(SeriesSelection((metric,)), t0, t1)):
                groups.setdefault(_group(run, series, by), []).append(series)
        return await run_in_threadpool(fleet_of_series, groups, t0, t1, bucket_ms)


def _group(run: Run, series: Series, by: Grouping | None) -> str | None:
    if by is None:
        return None
    groups = {"project": run.project, "host": series.host, "state": run.state, "run": run.id}
    return groups.get(by, "")  # journals have neither entities nor authors


def _columns(run: Run, names: Sequence[str], statistics: SystemStatistics) -> dict[str, str | float]:
    """Return the values of fields of a run; missing ones are left out."""
    values = {name: value_of(run, name, statistics) for name in names}
    return {
        name: value.number if value.kind == fields.NUMBER else value.text
        for name, value in values.items()
        if value is not None
    }


def _with_last(run: Run, is_requested: Callable[[str], bool]) -> Run:
    last = {
        host: {key: value for key, value in values.items() if is_requested(key)}
        for host, values in run.last.items()
    }
    return replace(run, last=last)
