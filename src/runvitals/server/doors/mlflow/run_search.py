"""`runs/search`: the database selects and sorts what it can; each run is then compared as by MLflow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import anyio.to_thread

from runvitals.base import deadline
from runvitals.model.filter import (
    FieldComparison,
    Filter,
    Label,
    Labelled,
    Predicate,
    ReadableRuns,
    Term,
    TextPattern,
)
from runvitals.model.metrics.mlflow import PREFIX as SYSTEM
from runvitals.model.run_sort import MAX_PARTS, RunSort
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.metric_history import HistoryPoint
from runvitals.server.doors.mlflow.pages import offset, position, token
from runvitals.server.doors.mlflow.params import from_text
from runvitals.server.doors.mlflow.runs import Runs, TrackedRun
from runvitals.server.doors.mlflow.search_text import Comparison, OrderBy, Value
from runvitals.server.http.workers import DEADLINE_S, Workers
from runvitals.server.metadata_store import MetadataStore

PAGE: Final = 1000
MAX_SORTED: Final = 10_000
"""Runs that are sorted in Python, where the database cannot."""
MAX_NAME: Final = 250
DATASET_CONTEXT: Final = "mlflow.data.context"
"""The tag that says what a dataset was used for."""
_COLUMNS: Final = {"run_id": "id", "run_name": "name", "start_time": "started_ms"}
_DEFAULT_ORDER: Final = (RunSort("started_ms"), RunSort("id", descending=False))
_Found = tuple[TrackedRun, list[HistoryPoint]]
Latest = Callable[[TrackedRun], Awaitable[list[HistoryPoint]]]


@dataclass(frozen=True, slots=True)
class RunSearch:
    """A search.

    Args:
        projects: ids of the projects that are searched, all of them readable.
        deleted: whether to find the runs in the trash, those that are not there, or both (None).
        query: what its tokens belong to.
    """

    projects: frozenset[int]
    comparisons: Sequence[Comparison]
    order: Sequence[OrderBy]
    deleted: bool | None
    most: int
    page_token: str | None
    query: str = ""


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """A page: the runs with their metrics."""

    runs: list[_Found]
    next_token: str | None


class RunSearcher:
    """Searches for one requester. Call it in the event loop.

    Args:
        workers: sort what the database cannot.
    """

    def __init__(
        self, store: MetadataStore, runs: Runs, now_ms: int, latest: Latest, workers: Workers
    ) -> None:
        self._workers = workers
        self._store = store
        self._runs = runs
        self._now_ms = now_ms
        self._latest = latest

    async def search(self, search: RunSearch) -> FoundRuns:
        """Return a page of the runs that match.

        Raises:
            MlflowError: an invalid token, or too many runs for an order.
            TooSlow: it takes too long, say because hardly any run matches.
        """
        if not search.projects:
            return FoundRuns([], None)
        sort = _sort_of(search.order)
        with deadline.within(DEADLINE_S):
            if sort is None or search.deleted is None or await self._is_sorted_exactly(search, sort):
                return await self._sorted_in_python(search)
            return await self._by_database(search, sort)

    async def _is_sorted_exactly(self, search: RunSearch, sort: RunSort) -> bool:
        """Return whether an order by metrics is that of MLflow, in which NaN comes before no value.

        The database sorts by summaries, which have no NaN: that is for more runs than are read at once.
        """
        if all(part.kind != "metric" for part in search.order):
            return False
        if search.page_token:
            return isinstance(position(search.page_token, search.query), int)
        _, following = await self._page(search, _filter(search, bool(search.deleted)), sort, None)
        return following is None

    async def _by_database(self, search: RunSearch, sort: RunSort) -> FoundRuns:
        after, skip = _page_and_offset(position(search.page_token, search.query))
        pairs: list[_Found] = []
        condition = _filter(search, bool(search.deleted))
        while True:
            deadline.check()
            page, following = await self._page(search, condition, sort, after)
            for index, run in enumerate(page[skip:], skip):
                metrics = None if run is None else await self._matching(run, search.comparisons)
                if run is None or metrics is None:
                    continue
                if len(pairs) == search.most:
                    return FoundRuns(pairs, token([after, index], search.query))
                pairs.append((run, metrics))
            if following is None:
                return FoundRuns(pairs, None)
            after, skip = following, 0

    async def _page(
        self, search: RunSearch, condition: Filter, sort: RunSort, after: str | None
    ) -> tuple[list[TrackedRun | None], str | None]:
        """Return runs of the database, with None for those that do not match, and the next page.

        They are compared in the thread: patterns of LIKE take long.
        """
        others = [comparison for comparison in search.comparisons if comparison.kind != "metric"]

        def read() -> tuple[list[TrackedRun | None], str | None]:
            try:
                page = self._store.runs.page(condition, sort, self._now_ms, PAGE, after)
            except ValueError:
                raise invalid("Invalid page token: it belongs to another search") from None
            runs = self._runs.of_rows(page.runs)
            matching = [
                run if all(_holds(run, comparison) for comparison in others) else None for run in runs
            ]
            return matching, page.next

        return await anyio.to_thread.run_sync(read)

    async def _matching(
        self, run: TrackedRun, comparisons: Sequence[Comparison]
    ) -> list[HistoryPoint] | None:
        """Return the metrics of a run if they match, else None.

        They are read last, since that takes longest.
        """
        metrics = await self._latest(run)
        by_name = {point.key: point.value for point in metrics}
        if not all(
            comparison.holds(_value(run, by_name, comparison))
            for comparison in comparisons
            if comparison.kind == "metric"
        ):
            return None
        return metrics

    async def _sorted_in_python(self, search: RunSearch) -> FoundRuns:
        """Sort in Python: by tags, by many parts, or runs in the trash among others."""
        pairs: list[_Found] = []
        for deleted in (False, True) if search.deleted is None else (search.deleted,):
            everything = replace(search, deleted=deleted, most=MAX_SORTED, page_token=None, order=())
            page = await self._by_database(everything, RunSort(then=_DEFAULT_ORDER[1:]))
            pairs += page.runs
            if page.next_token is not None or len(pairs) > MAX_SORTED:
                raise invalid(
                    f"more than {MAX_SORTED} runs match, which is too many for this order_by or "
                    "run_view_type: search fewer experiments, or with a filter"
                )
        pairs = await self._workers.run(lambda: _sort(pairs, search.order))
        first = offset(search.page_token, search.query)
        more = token(first + search.most, search.query) if len(pairs) > first + search.most else None
        return FoundRuns(pairs[first : first + search.most], more)


def _sort(pairs: list[_Found], order: Sequence[OrderBy]) -> list[_Found]:
    """Return runs in an order; takes 0.1 s for each part of it with the most runs."""
    pairs = sorted(pairs, key=lambda pair: pair[0].row.uid)
    pairs.sort(key=lambda pair: pair[0].start_time, reverse=True)
    for part in reversed(order):
        deadline.check()
        pairs = _sort_by(pairs, part)
    return pairs


def _sort_by(pairs: list[_Found], part: OrderBy) -> list[_Found]:
    values: list[tuple[Any, _Found]] = []
    not_numbers, without = [], []
    for pair in pairs:
        value = _value(pair[0], {point.key: point.value for point in pair[1]}, part)
        if value is None:
            without.append(pair)
        elif value != value:  # MLflow puts NaN after all numbers, and before runs without a value
            not_numbers.append(pair)
        else:
            values.append((value, pair))
    values.sort(key=lambda item: item[0], reverse=not part.ascending)
    return [*(pair for _, pair in values), *not_numbers, *without]


def _holds(run: TrackedRun, comparison: Comparison) -> bool:
    """Return whether a comparison of anything but metrics holds: of datasets, for any that the run used."""
    if comparison.kind != "dataset":
        return comparison.holds(_value(run, {}, comparison))
    return any(comparison.holds(_of_dataset(used, comparison.key)) for used in run.lineage.datasets)


def _of_dataset(used: Mapping[str, Any], key: str) -> str | None:
    if key != "context":
        value: str | None = used["dataset"].get(key)
        return value
    return next((tag["value"] for tag in used["tags"] if tag["key"] == DATASET_CONTEXT), None)


def _value(run: TrackedRun, metrics: dict[str, float], comparison: Comparison | OrderBy) -> Value | None:
    if comparison.kind == "metric":
        return metrics.get(comparison.key)
    if comparison.kind == "parameter":
        return run.params.get(comparison.key)
    if comparison.kind == "tag":
        return run.tags.get(comparison.key)
    return run.attribute(comparison.key)


def _page_and_offset(value: Any) -> tuple[str | None, int]:
    """Return the page of the database that a token is in, and the offset in it."""
    if value is None:
        return None, 0
    if not isinstance(value, list) or len(value) != 2:
        raise invalid("Invalid page token: it belongs to another search")
    after, skip = value
    if not (after is None or isinstance(after, str)) or type(skip) is not int or not 0 <= skip <= PAGE:
        raise invalid("Invalid page token: it belongs to another search")
    return after, skip


def _filter(search: RunSearch, deleted: bool) -> Filter:
    terms = tuple(term for comparison in search.comparisons if (term := _term(comparison)) is not None)
    projects = search.projects
    readable = ReadableRuns(projects=projects, trash=projects if deleted else frozenset())
    return Filter(deleted=deleted, readable=readable, terms=terms)


def _term(comparison: Comparison) -> Term | None:
    """Return a condition that holds for all runs for which a comparison does.

    None if the database has none.
    """
    if len(comparison.key) > MAX_NAME or isinstance(comparison.value, tuple) or comparison.value is None:
        return None
    if _is_system_metric(comparison):
        return None
    if comparison.kind == "metric" and comparison.operator not in ("=", "!="):
        predicate = Predicate(f"summary.{comparison.key}", comparison.operator, comparison.value)
        return Term(FieldComparison((predicate,)))
    if comparison.operator != "=" or not isinstance(comparison.value, str) or not comparison.value:
        return None
    if comparison.kind == "parameter":
        values = {type(value): value for value in (comparison.value, from_text(comparison.value))}
        return Term(
            FieldComparison(
                tuple(Predicate(f"config.{comparison.key}", "=", value) for value in values.values())
            )
        )
    if comparison.kind == "attribute" and comparison.key in ("run_id", "run_name"):
        label: Label = "id" if comparison.key == "run_id" else "name"
        return Term(Labelled(label, (TextPattern(comparison.value),)))
    return None


def _is_system_metric(part: Comparison | OrderBy) -> bool:
    """Return whether it is about a metric that is stored under our key, so that no summary has its name."""
    return part.kind == "metric" and part.key.startswith(SYSTEM)


def _sort_of(order: Sequence[OrderBy]) -> RunSort | None:
    """Return the order as the database sorts; None if it cannot."""
    parts: list[RunSort] = []
    for part in order:
        if part.kind == "metric" and len(part.key) <= MAX_NAME and not _is_system_metric(part):
            name = f"summary.{part.key}"
        elif part.kind == "attribute" and part.key in _COLUMNS:
            name = _COLUMNS[part.key]
        else:
            return None
        parts.append(RunSort(name, descending=not part.ascending))
    kinds = {part.by for part in parts}
    parts += [part for part in _DEFAULT_ORDER if part.by not in kinds]
    if len(parts) > MAX_PARTS:
        return None
    return replace(parts[0], then=tuple(parts[1:]))
