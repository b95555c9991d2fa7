"""The runs of a shared server's store: the counterpart of `local.run_library`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal, TypeVar

from runvitals.model.completion import FieldChoice
from runvitals.model.filter import Filter, Predicate, ReadableRuns
from runvitals.model.metrics import mlflow
from runvitals.model.run_groups import RunGroup
from runvitals.model.run_sort import RunSort
from runvitals.model.state import RUNNING
from runvitals.readers.journals.key_filter import KeyFilter, canonical
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.hosts.fleet import fleet_of_aggregates
from runvitals.server.hosts.hosts import FleetHost, HostRun
from runvitals.server.http.cached_read import CachedRead
from runvitals.server.http.workers import QUICK_THREADS, THOROUGH_THREADS, Workers
from runvitals.server.library.measured_library import ProjectStorage, RunStorage
from runvitals.server.library.run_library import (
    AggregatedSeries,
    Grouping,
    LatestValues,
    NamedRun,
    RunVersion,
    RunView,
)
from runvitals.server.library.stored.hosts import StoredHosts
from runvitals.server.library.stored.logged_extents import LoggedExtent, logged_extents
from runvitals.server.library.stored.metric_selection import MetricSelection
from runvitals.server.library.stored.plans import StoredPlans
from runvitals.server.library.stored.run import StoredRun
from runvitals.server.library.stored.run_changes import StoredChanges
from runvitals.server.library.stored.run_facts import LastValues, last_values, listed_runs
from runvitals.server.library.stored.sparklines import sparklines_of
from runvitals.server.library.stored.writer_rows import WriterRows, stored_rows
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.run_lists import NO_COLUMNS, RunsPage, ShownColumns
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.usage.stored_bytes import run_storage_of, storage_of
from runvitals.store.samples.interface import SampleStore

T = TypeVar("T")
_KEPT_RUNS = 1000
_VIEWS = THOROUGH_THREADS + 1
"""Per run: one more than requests that read samples, so that a view is free for quick ones."""
MAX_FLEET = 20_000
"""The most runs of one aggregate."""
MAX_FLEET_METRICS = 256
"""The most keys that the `metric` of an aggregate may match."""
_WILDCARDS = "*?["


class OpenedStoredRun:
    """A run that several requests read at the same time, each with a view of its own while one is free.

    Args:
        make: creates a view of the run.
        version: returns the result of `version`.
    """

    def __init__(
        self,
        make: Callable[[], StoredRun],
        version: Callable[[], RunVersion | None],
        quick: Workers,
        thorough: Workers,
    ) -> None:
        self._make = make
        self.version = version
        self._quick, self._thorough = quick, thorough
        self._views: list[tuple[StoredRun, CachedRead]] = []
        self._facts: int | None = None

    def invalidate(self) -> None:
        """Refresh all views before their next use."""
        for _, cached in self._views:
            cached.invalidate()

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """Return the result of `work`, called with an up-to-date view.

        It has all writers and names of values that this server had stored when it was called.
        """
        version = self.version()
        if version is not None and version.facts != self._facts:
            self._facts = version.facts
            self.invalidate()
        view, cached = self._free_view()
        return await cached.use(lambda: work(view), self._quick if quick else self._thorough)

    def _free_view(self) -> tuple[StoredRun, CachedRead]:
        for view, cached in self._views:
            if not cached.users:
                return view, cached
        if len(self._views) < _VIEWS:
            view = self._make()
            self._views.append((view, CachedRead(view.refresh)))
            return self._views[-1]
        return min(self._views, key=lambda pair: pair[1].users)


class StoredLibrary(StoredChanges):
    """All runs of a store: a `Library` and an `EditableLibrary`.

    Args:
        clock: the time now, ms UTC; the states of runs depend on it.
        versions: returns the version of a run, by its number in the metadata store.
        files: the files that runs sent; None: there are none.

    Example:
        >>> application(local_services(StoredLibrary(store, metadata store, now_ms)))
    """

    kind: Literal["local", "server"] = "server"

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        versions: Callable[[int], RunVersion | None] = lambda number: None,
        files: ReceivedFiles | None = None,
    ) -> None:
        self._files = files
        self.clock = clock
        self._versions = versions
        self._changes = 0
        self._store = store
        self._metadata_store = metadata_store
        self._selection = MetricSelection(metadata_store)
        self._hosts = StoredHosts(store, metadata_store, clock)
        self._opened: dict[str, OpenedStoredRun] = {}
        self._plans = StoredPlans()
        self._quick, self._thorough = Workers(QUICK_THREADS), Workers(THOROUGH_THREADS)

    async def storage(self, entity_id: int) -> list[ProjectStorage]:
        """Return what the projects of a team or user take, the largest first."""
        return await self._thorough.run(lambda: storage_of(self._store, self._metadata_store, entity_id))

    async def run_storage(self, entity_id: int, project_id: int) -> list[RunStorage]:
        """Return what the runs of a project take, the largest first."""
        return await self._thorough.run(
            lambda: run_storage_of(self._store, self._metadata_store, entity_id, project_id)
        )

    async def projects(self, readable: ReadableRuns | None = None) -> list[dict[str, Any]]:
        """`models.ProjectSchema` for each project with runs, the one with the newest run first."""
        projects = await self._quick.run(lambda: self._metadata_store.projects.all(self.clock(), readable))
        return [asdict(project) for project in projects]

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
        """Return a page of the runs that match a filter; raise ValueError if `after` is no page's `next`."""
        workers = self._thorough if shown.sparklines else self._quick
        return await workers.run(lambda: self._page(run_filter, sort, limit, after, last, shown, skip))

    def _page(
        self,
        run_filter: Filter,
        sort: RunSort,
        limit: int,
        after: str | None,
        last: Callable[[str], bool],
        shown: ShownColumns,
        skip: int,
    ) -> RunsPage:
        now_ms = self.clock()
        page = self._metadata_store.runs.page(run_filter, sort, now_ms, limit, after, skip)
        runs = listed_runs(
            page.runs, self._metadata_store, self._store, self._selection.numbers(last), now_ms
        )
        complete = after is None and not skip and page.next is None
        total = len(runs) if complete else self._metadata_store.runs.count(run_filter, now_ms)
        ids = [row.id for row in page.runs]
        values = self._metadata_store.runs.field_values(ids, shown.fields) if shown.fields else {}
        lines = self._sparklines(page.runs, shown.sparklines) if shown.sparklines else {}
        return RunsPage(
            runs,
            total,
            page.next,
            [values.get(run_id, {}) for run_id in ids],
            [lines.get(run_id, {}) for run_id in ids],
        )

    def _sparklines(self, rows: Sequence[RunRow], keys: Sequence[str]) -> dict[int, dict[str, list[float]]]:
        writers = self._metadata_store.writers.of_runs([row.id for row in rows])
        numbers = {key: self._metrics(key) for key in keys}
        return {row.id: sparklines_of(self._store, row, writers[row.id], numbers) for row in rows}

    async def fields(self, run_filter: Filter) -> list[str]:
        """Return the configuration, summary and system fields of the runs that match a filter."""
        return await self._quick.run(lambda: self._metadata_store.runs.fields(run_filter, self.clock()))

    async def choices(self, run_filter: Filter) -> list[FieldChoice]:
        """Return what a filter of these runs can name, with frequent values."""
        return await self._quick.run(lambda: self._metadata_store.runs.choices(run_filter, self.clock()))

    async def groups(
        self, run_filter: Filter, by: tuple[str, ...], columns: tuple[str, ...]
    ) -> list[RunGroup]:
        """Return the groups of the runs that match a filter, unordered, or raise TooManyGroups."""
        runs = self._metadata_store.runs
        return await self._quick.run(lambda: runs.groups(run_filter, by, columns, self.clock()))

    async def open(self, run_id: str, number: int | None = None) -> OpenedStoredRun:
        """Return a run by its full id or its number; raise UnknownRun, also for one in the trash."""
        return self._open(await self._quick.run(lambda: self._row(run_id, number)))

    async def named(self, ids: Sequence[str], run_filter: Filter) -> list[NamedRun]:
        """Return those of these runs that match a filter, in the requested order.

        Raises:
            AmbiguousName: several teams have a run with one of these ids.
        """
        runs = self._metadata_store.runs
        rows = await self._quick.run(lambda: runs.named(ids, run_filter, self.clock()))
        return [
            NamedRun(
                row.uid,
                row.name,
                row.state,
                row.started_ms,
                row.started_ms + row.duration_ms,
                self._open(row),
            )
            for row in rows
        ]

    def _open(self, row: RunRow) -> OpenedStoredRun:
        opened = self._opened.pop(f"{row.id}", None)
        if opened is None:
            stores = self._store, self._metadata_store, self._files
            make = partial(StoredRun, row.uid, row.id, *stores, self._plans)
            opened = OpenedStoredRun(make, partial(self._version, row.id), self._quick, self._thorough)
        self._opened[f"{row.id}"] = opened
        if len(self._opened) > _KEPT_RUNS:
            self._opened.pop(next(iter(self._opened)))
        return opened

    def logged_extents(self, run_ids: Sequence[int]) -> dict[int, LoggedExtent]:
        """Return how many rows runs have logged, by id; call it in a thread."""
        return logged_extents(self._store, self._metadata_store, run_ids)

    def stored_rows(self, run_id: int) -> list[WriterRows]:
        """Return the rows that a run logged, as they are stored; call it in a thread."""
        return stored_rows(self._store, self._metadata_store, run_id)

    def newest_values(self, run_ids: Sequence[int]) -> dict[int, LastValues]:
        """Return the newest values of the system metrics of runs, by id; call it in a thread."""
        writers = self._metadata_store.writers.of_runs(run_ids).values()
        of_runs = [writer for of_run in writers for writer in of_run]
        return last_values(of_runs, self._metadata_store, self._store, None)

    async def latest(self, run_filter: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        """Return the newest values of all running runs that match a filter."""
        return await self._thorough.run(lambda: self._latest(run_filter, keys))

    def _latest(self, run_filter: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        now_ms = self.clock()
        ids = self._metadata_store.runs.ids(replace(run_filter, states=(RUNNING,)), now_ms)
        rows = self._metadata_store.runs.get(ids, now_ms)
        writers = [
            writer for of_run in self._metadata_store.writers.of_runs(ids).values() for writer in of_run
        ]
        last = last_values(writers, self._metadata_store, self._store, self._selection.numbers(keys))
        return [
            LatestValues(
                row.uid,
                row.project,
                host,
                {key: t for key, (t, _) in values.items()},
                {key: value for key, (_, value) in values.items()},
                row.entity,
            )
            for run_id, row in rows.items()
            for host, values in last.get(run_id, {}).items()
        ]

    async def hosts(self, readable: ReadableRuns | None = None) -> list[FleetHost]:
        """Return the hosts with a record of the last 7 days."""
        return await self._thorough.run(lambda: self._hosts.list_hosts(readable))

    async def host_runs(
        self, host: str, t0: int, t1: int, limit: int, readable: ReadableRuns | None = None
    ) -> list[HostRun] | None:
        """Return the newest runs on a host that overlap a time range; None: there is no such host."""
        return await self._quick.run(lambda: self._hosts.runs_on(host, t0, t1, limit, readable))

    async def aggregate(
        self, metric: str, run_filter: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[AggregatedSeries]:
        """Return one metric over all matching runs; raise ValueError if too many runs or keys match."""
        return await self._thorough.run(lambda: self._aggregate(metric, run_filter, t0, t1, bucket_ms, by))

    def _aggregate(
        self, metric: str, run_filter: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[AggregatedSeries]:
        now_ms = self.clock()
        started = replace(run_filter, where=(*run_filter.where, Predicate("started_ms", "<=", float(t1))))
        ids = self._metadata_store.runs.ids(started, now_ms)
        if len(ids) > MAX_FLEET:
            raise ValueError(
                f"{len(ids):,} runs match; at most {MAX_FLEET:,} are allowed: "
                "narrow it by project, state, tag, text or `where=last_ms > …`"
            )
        writers = [
            writer for of_run in self._metadata_store.writers.of_runs(ids).values() for writer in of_run
        ]
        labels = {writer.lane_id: (writer.run_id, writer.host) for writer in writers}
        rows = self._metadata_store.runs.get(ids, now_ms) if by not in (None, "host") else {}
        groups = {lane: _group(rows.get(run_id), host, by) for lane, (run_id, host) in labels.items()}
        numbers = {
            name: number for number, name in enumerate(sorted(set(groups.values()), key=lambda n: n or ""))
        }
        aggregates = [
            aggregate
            for number in self._metrics(metric)
            for aggregate in self._store.aggregate(
                number,
                sorted(labels),
                t0,
                t1,
                bucket_ms,
                {lane: numbers[name] for lane, name in groups.items()},
            ).series
        ]
        return fleet_of_aggregates({number: name for name, number in numbers.items()}, aggregates)

    def _metrics(self, metric: str) -> list[int]:
        """Return the numbers of the stored metrics that match a key or glob.

        Raises:
            ValueError: too many match.
        """
        key_filter = KeyFilter([metric])
        prefix = metric[
            : min(
                (metric.find(wildcard) for wildcard in _WILDCARDS if wildcard in metric), default=len(metric)
            )
        ]
        candidates = self._metadata_store.metrics.with_prefix(prefix) if prefix != metric else {}
        candidates |= self._metadata_store.metrics.find({metric, canonical(metric)})
        if (match := mlflow.from_mlflow(metric)) is not None:  # a name without an index means all GPUs
            candidates |= self._metadata_store.metrics.with_prefix(match.key.partition(".")[0] + ".")
        numbers = sorted(number for key, number in candidates.items() if key_filter(key))
        if len(numbers) > MAX_FLEET_METRICS:
            raise ValueError(
                f"metric={metric} matches {len(numbers)} keys; at most {MAX_FLEET_METRICS} are allowed"
            )
        return numbers

    def _version(self, number: int) -> RunVersion | None:
        version = self._versions(number)
        if version is None:
            return None
        return RunVersion(version.all + self._changes, version.facts + self._changes)

    def changed_elsewhere(self) -> None:
        """Read runs again: another server may have changed them."""
        self._changes += 1
        for opened in list(self._opened.values()):
            opened.invalidate()


def _group(row: RunRow | None, host: str, by: Grouping | None) -> str | None:
    if by is None:
        return None
    if by == "host":
        return host
    if row is None:
        return ""
    return {
        "project": row.project,
        "state": row.state,
        "run": row.uid,
        "entity": row.entity or "",
        "author": "" if row.author is None else row.author.name or row.author.display_name,
    }[by]
