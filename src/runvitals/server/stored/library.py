"""The shared store as a library: its runs answer the API's calls just as journals do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal, TypeVar

from starlette.concurrency import run_in_threadpool

from runvitals.metrics import mlflow
from runvitals.model.errors import UnknownRun
from runvitals.model.state import RUNNING
from runvitals.query.key_filter import KeyFilter, canonical
from runvitals.server.cached_read import CachedRead
from runvitals.server.fleet import fleet_of_aggregates
from runvitals.server.library import FleetSeries, Grouping, LatestValues, RunsPage, RunVersion, RunView
from runvitals.server.stored.metric_selection import MetricSelection
from runvitals.server.stored.run import StoredRun
from runvitals.server.stored.run_facts import last_values, listed_runs
from runvitals.server.workers import QUICK_THREADS, THOROUGH_THREADS, Workers
from runvitals.store.metadata import Filter, MetadataStore, Predicate, RunRow, RunSort
from runvitals.store.samples.contract import SampleStore

T = TypeVar("T")
_KEPT_RUNS = 1000
_VIEWS = THOROUGH_THREADS + 1
"""Of one run: one more than answers that may take long."""
MAX_FLEET = 20_000
"""Runs that one answer may be about."""
MAX_FLEET_METRICS = 256
"""Keys that a glob over many runs may stand for."""
_WILDCARDS = "*?["


class OpenedStoredRun:
    """A run that requests share. An answer that takes long holds one view of it; others use another.

    Args:
        make: a new view of the run.
        version: what `version` answers.
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

    def invalidate(self) -> None:
        """What is known of it has changed."""
        for _, shared in self._views:
            shared.invalidate()

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """The result of `work` on the run, up to date."""
        view, shared = self._free()
        return await shared.use(lambda: work(view), self._quick if quick else self._thorough)

    def _free(self) -> tuple[StoredRun, CachedRead]:
        for one in self._views:
            if not one[1].users:
                return one
        if len(self._views) < _VIEWS:
            view = self._make()
            self._views.append((view, CachedRead(view.refresh)))
            return self._views[-1]
        return min(self._views, key=lambda one: one[1].users)


class StoredLibrary:
    """All runs of a store; a `views.Library` whose runs can be changed.

    Args:
        clock: the time now, in ms UTC; states of runs depend on it.
        versions: of a run, by its number: whoever takes in what is new of it counts.

    Example:
        >>> app.state.library = StoredLibrary(store, catalogue, now_ms)
    """

    kind: Literal["local", "server"] = "server"

    def __init__(
        self,
        store: SampleStore,
        catalogue: MetadataStore,
        clock: Callable[[], int],
        versions: Callable[[int], RunVersion | None] = lambda number: None,
    ) -> None:
        self.clock = clock
        self._versions = versions
        self._changes = 0
        self._store = store
        self._catalogue = catalogue
        self._chosen = MetricSelection(catalogue)
        self._opened: dict[str, OpenedStoredRun] = {}
        self._quick, self._thorough = Workers(QUICK_THREADS), Workers(THOROUGH_THREADS)

    async def projects(self) -> list[dict[str, Any]]:
        """`models.Project` of those that have runs, the one with the newest run first."""
        found = await self._quick.run(lambda: self._catalogue.projects.all(self.clock()))
        return [asdict(project) for project in found]

    async def page(
        self, wanted: Filter, sort: RunSort, limit: int, after: str | None, last: Callable[[str], bool]
    ) -> RunsPage:
        """Some runs of a filter, in order.

        Raises:
            ValueError: an `after` that no page before gave.
        """
        return await self._quick.run(lambda: self._page(wanted, sort, limit, after, last))

    def _page(
        self, wanted: Filter, sort: RunSort, limit: int, after: str | None, last: Callable[[str], bool]
    ) -> RunsPage:
        now_ms = self.clock()
        page = self._catalogue.runs.page(wanted, sort, now_ms, limit, after)
        runs = listed_runs(page.runs, self._catalogue, self._store, self._chosen.numbers(last), now_ms)
        complete = after is None and page.next is None
        total = len(runs) if complete else self._catalogue.runs.count(wanted, now_ms)
        return RunsPage(runs, total, page.next)

    async def fields(self, wanted: Filter) -> list[str]:
        """The fields of configurations and summaries that runs of a filter have."""
        return await self._quick.run(lambda: self._catalogue.runs.fields(wanted, self.clock()))

    async def open(self, run_id: str) -> OpenedStoredRun:
        """A run by its whole id.

        Raises:
            UnknownRun: there is none, or it is in the trash.
        """
        row = await self._quick.run(lambda: self._row(run_id))
        opened = self._opened.pop(f"{row.id}", None)
        if opened is None:
            make = partial(StoredRun, row.uid, row.id, self._store, self._catalogue)
            opened = OpenedStoredRun(make, partial(self._version, row.id), self._quick, self._thorough)
        self._opened[f"{row.id}"] = opened
        if len(self._opened) > _KEPT_RUNS:
            self._opened.pop(next(iter(self._opened)))
        return opened

    def _row(self, run_id: str, deleted: bool = False) -> RunRow:
        row = self._catalogue.runs.find(run_id, self.clock())
        if row is None:
            raise UnknownRun(f"no run {run_id!r} on this server: the API expects a full run id")
        if row.deleted_ms is not None and not deleted:
            raise UnknownRun(
                f"run {run_id!r} is in the trash: POST /api/v1/runs/{run_id}/restore restores it"
            )
        return row

    async def latest(self, wanted: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        """The newest value of each key, of all runs of a filter that are running."""
        return await self._thorough.run(lambda: self._latest(wanted, keys))

    def _latest(self, wanted: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        now_ms = self.clock()
        ids = self._catalogue.runs.ids(replace(wanted, states=(RUNNING,)), now_ms)
        rows = self._catalogue.runs.get(ids, now_ms)
        writers = [one for some in self._catalogue.writers.of_runs(ids).values() for one in some]
        last = last_values(writers, self._catalogue, self._store, self._chosen.numbers(keys))
        return [
            LatestValues(
                row.uid,
                row.project,
                host,
                {key: t for key, (t, _) in values.items()},
                {key: value for key, (_, value) in values.items()},
            )
            for run_id, row in rows.items()
            for host, values in last.get(run_id, {}).items()
        ]

    async def aggregate(
        self, metric: str, wanted: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[FleetSeries]:
        """One metric over many runs.

        Raises:
            ValueError: too many runs or keys for one answer.
        """
        return await self._thorough.run(lambda: self._aggregate(metric, wanted, t0, t1, bucket_ms, by))

    def _aggregate(
        self, metric: str, wanted: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[FleetSeries]:
        now_ms = self.clock()
        theirs = replace(wanted, where=(*wanted.where, Predicate("started_ms", "<=", float(t1))))
        ids = self._catalogue.runs.ids(theirs, now_ms)
        if len(ids) > MAX_FLEET:
            raise ValueError(
                f"{len(ids):,} runs; one answer is about at most {MAX_FLEET:,}: "
                "narrow it by project, state, tag, text or `where=last_ms > …`"
            )
        writers = [one for some in self._catalogue.writers.of_runs(ids).values() for one in some]
        names = {one.lane_id: (one.run_id, one.host) for one in writers}
        rows = self._catalogue.runs.get(ids, now_ms) if by not in (None, "host") else {}
        groups = {lane: _group(rows.get(run_id), host, by) for lane, (run_id, host) in names.items()}
        numbers = {
            name: number for number, name in enumerate(sorted(set(groups.values()), key=lambda n: n or ""))
        }
        answers = [
            one
            for number in self._metrics(metric)
            for one in self._store.aggregate(
                number,
                sorted(names),
                t0,
                t1,
                bucket_ms,
                {lane: numbers[name] for lane, name in groups.items()},
            ).series
        ]
        return fleet_of_aggregates({number: name for name, number in numbers.items()}, answers)

    def _metrics(self, metric: str) -> list[int]:
        """The numbers of the stored metrics that are meant.

        Raises:
            ValueError: a glob that means too many.
        """
        wanted = KeyFilter([metric])
        prefix = metric[: min((metric.find(one) for one in _WILDCARDS if one in metric), default=len(metric))]
        found = self._catalogue.metrics.beginning(prefix) if prefix != metric else {}
        found |= self._catalogue.metrics.find({metric, canonical(metric)})
        if (match := mlflow.from_mlflow(metric)) is not None:  # without an index it means all GPUs
            found |= self._catalogue.metrics.beginning(match.key.partition(".")[0] + ".")
        numbers = sorted(number for key, number in found.items() if wanted(key))
        if len(numbers) > MAX_FLEET_METRICS:
            raise ValueError(
                f"metric={metric} means {len(numbers)} keys; at most {MAX_FLEET_METRICS} are allowed"
            )
        return numbers

    # Changing runs

    async def stop(self, run_id: str) -> None:
        """Note that a user wants a run to end: its relay is told so.

        Raises:
            UnknownRun: there is no such run.
            ValueError: it has ended.
        """

        def work() -> None:
            row = self._row(run_id)
            if row.state != RUNNING:
                raise ValueError(f"run {run_id!r} is {row.state}: only a running one can be stopped")
            self._catalogue.runs.request_stop(row.id, self.clock())

        await self._change(work)

    async def delete(self, run_id: str) -> None:
        """Throw a run away.

        Raises:
            UnknownRun: there is no such run.
        """
        await self._change(lambda: self._catalogue.runs.delete([self._row(run_id).id], self.clock()))

    async def restore(self, run_id: str) -> None:
        """Restore a run from the trash.

        Raises:
            UnknownRun: there is no such run.
        """
        await self._change(lambda: self._catalogue.runs.restore([self._row(run_id, deleted=True).id]))

    async def edit(self, run_id: str, values: dict[str, Any]) -> None:
        """Set keys of a run's `run` section.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """
        await self._change(lambda: self._catalogue.runs.set_about(self._row(run_id).id, values, self.clock()))

    async def rename_project(self, name: str, new_name: str) -> None:
        """Give a project another name.

        Raises:
            UnknownProject: no run was ever in it.
            ValueError: there is a project of that name.
        """
        projects = self._catalogue.projects
        await self._change(lambda: projects.rename(projects.id(name), new_name))

    async def delete_project(self, name: str) -> int:
        """Throw away all runs of a project; how many those were.

        Raises:
            UnknownProject: no run was ever in it.
        """
        projects = self._catalogue.projects
        found = await run_in_threadpool(lambda: projects.delete(projects.id(name), self.clock()))
        self._all_stale()
        return found

    async def _change(self, work: Callable[[], None]) -> None:
        await run_in_threadpool(work)
        self._all_stale()

    def _version(self, number: int) -> RunVersion | None:
        heard = self._versions(number)
        return None if heard is None else RunVersion(heard.all + self._changes, heard.facts + self._changes)

    def _all_stale(self) -> None:
        self._changes += 1
        for opened in self._opened.values():
            opened.invalidate()


def _group(row: RunRow | None, host: str, by: Grouping | None) -> str | None:
    if by is None:
        return None
    if by == "host":
        return host
    if row is None:
        return ""
    return {"project": row.project, "state": row.state, "run": row.uid}[by]
