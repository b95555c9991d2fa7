"""A run in the store as the API reads it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from cachetools import LRUCache

from runvitals.base.buckets import Floats, Grid, Integers
from runvitals.journal.records import STREAMS
from runvitals.model.errors import UnknownRun
from runvitals.model.limits import STEP as MAX_STEP
from runvitals.model.logged_media import LoggedValue, MediaKey, SavedFile, ValueSelection
from runvitals.model.names import RESERVED, STEP, TRUE_TIME
from runvitals.model.run import Event, Run
from runvitals.readers.journals.series import Series
from runvitals.server.charts.run_plan import RunPlan
from runvitals.server.charts.series import check_value_count, summary
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.http import cached_read
from runvitals.server.library.run_library import (
    ArtifactRelation,
    BucketedSeries,
    ChartData,
    ConsolePiece,
    LoggedColumns,
    MediaPage,
    MediaSelection,
    NewRow,
    NewSample,
    OpenedContent,
    Position,
    RunArtifact,
    RunArtifactPage,
    SeriesSelection,
    SeriesSummary,
    TooMuch,
    device_index,
)
from runvitals.server.library.stored.lanes import Lane, lanes
from runvitals.server.library.stored.plans import StoredPlans
from runvitals.server.library.stored.run_facts import detailed_run, events_of
from runvitals.server.library.stored.series import RequestedSeries, StoredSeries, requested_series
from runvitals.server.library.stored.true_times import true_times
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.console import KEPT_BYTES
from runvitals.store.samples.interface import END_OF_TIME_MS, SampleStore

_LOOK_BACK_MS = 120_000
_MAX_NEWEST = 5_000
"""Newest values that are returned with a run."""
_MAX_SERIES = 10_000
"""Series in one response: each takes 0.1 ms. More need several requests with different `keys`."""
_MAX_EXTENTS = 32
"""Selections whose times are kept while no newer samples arrive."""
_MAX_RATE_VALUES = 2_000_000
"""Values of counters that are read to compute the lowest and highest rates."""


class StoredRun:
    """A `RunView` of a run in the store. A position is the time of the newest value in each lane."""

    def __init__(
        self,
        run_id: str,
        number: int,
        store: SampleStore,
        metadata_store: MetadataStore,
        files: ReceivedFiles | None = None,
        plans: StoredPlans | None = None,
    ) -> None:
        self._plans = plans or StoredPlans()
        self._run_id = run_id
        self._number = number
        self._store = store
        self._metadata_store = metadata_store
        self._files = files
        self._series = StoredSeries(store)
        self._lanes: list[Lane] = []
        self._started_ms = 0
        self._run: tuple[float, int, Run] | None = None
        self._selected: tuple[SeriesSelection, list[RequestedSeries]] | None = None
        self._extents: LRUCache[SeriesSelection, tuple[dict[int, int], tuple[int, int] | None]]
        self._extents = LRUCache(_MAX_EXTENTS)

    @property
    def run_id(self) -> str:
        """See `RunView.run_id`."""
        return self._run_id

    @property
    def number(self) -> int:
        """See `RunView.number`."""
        return self._number

    def refresh(self) -> None:
        """Load the writers of the run and their keys."""
        writers = self._metadata_store.writers.of_runs([self._number])[self._number]
        self._lanes = lanes(self._metadata_store, self._number, writers, self._lanes)
        self._started_ms = min((writer.started_ms for writer in writers), default=0)
        self._series.refresh(self._lanes)
        self._run = self._selected = None

    def note_problems(self) -> Mapping[str, None]:
        """See `RunView.note_problems`."""
        self._series.noted = {}
        return self._series.noted

    def run(self, now_ms: int) -> Run:
        """Everything known of the run but its series.

        Raises:
            UnknownRun: it is in the trash, or was deleted.
        """
        if self._run is not None:
            read_s, read_ms, run = self._run
            if read_ms == now_ms or time.monotonic() - read_s < cached_read.FRESH_S:
                return run
        row = self._metadata_store.runs.get([self._number], now_ms).get(self._number)
        if row is None or row.deleted_ms is not None:
            raise UnknownRun(f"run {self._run_id!r} is in the trash")
        run = detailed_run(row, self._metadata_store, self._store, now_ms, self._newest_metrics())
        run.problems.extend(self._series.damaged)
        self._run = (time.monotonic(), now_ms, run)
        return run

    def _newest_metrics(self) -> frozenset[int] | None:
        """Return the metrics whose newest values are returned with the run; None means all."""
        numbers = {number for lane in self._lanes for number in lane.sampled.values()}
        return None if len(numbers) <= _MAX_NEWEST else frozenset(sorted(numbers)[:_MAX_NEWEST])

    def events(self, now_ms: int, skip: int, limit: int) -> list[Event]:
        """See `RunView.events`."""
        writers = self._metadata_store.writers.of_runs([self._number])[self._number]
        return events_of(self._number, writers, self._metadata_store, skip, limit)

    # Series

    def _requested_series(self, selection: SeriesSelection) -> list[RequestedSeries]:
        """Return the series of a selection. One response asks for them several times."""
        if self._selected is None or self._selected[0] != selection:
            self._selected = selection, self._matching(selection)
        return self._selected[1]

    def _matching(self, selection: SeriesSelection) -> list[RequestedSeries]:
        hosts: frozenset[str] = frozenset()
        if selection.rank is not None:
            ranks = self._metadata_store.writers.processes(self._number)
            hosts = frozenset(rank.host for rank in ranks if rank.rank == selection.rank)
        devices = None if selection.device is None else self._devices(selection.device)
        # Hosts have the same keys; a filter of many globs takes 10 µs for one.
        matches_key = functools.cache(selection.matches_key)

        def matches(lane: Lane, key: str) -> bool:
            return matches_key(key) and (devices is None or (lane.host, device_index(key)) in devices)

        selected = [lane for lane in self._lanes if lane.is_selected(selection, hosts)]
        return requested_series(selected, matches)

    def _devices(self, name: str) -> set[tuple[str, str | None]]:
        """(host, index) of the devices with this index, UUID or PCI address."""
        if name.isdecimal():
            return {(lane.host, name) for lane in self._lanes}
        return {
            (device.host, str(device.position))
            for device in self._metadata_store.devices.of_run(self._number)
            if name in (device.uuid, device.pci_address) and device.position is not None
        }

    def _limit(self, series: list[RequestedSeries], skip: int = 0) -> list[RequestedSeries]:
        """Return as many series as one response may hold; a problem is noted if there are more."""
        page = series[skip : skip + _MAX_SERIES]
        if len(series) > skip + len(page):
            omitted = len(series) - skip - len(page)
            self._series.noted[f"{omitted:,} more series are left out: select some with `keys`"] = None
        return page

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        """See `RunView.summaries`."""
        series = self._limit(self._requested_series(selection), skip)
        extents = self._series.extents(series, self._started_ms) if series else {}
        rates = [item for item in series if item.rate is not None and item.stored in extents]
        small = sum(extents[rate.stored].n for rate in rates) <= _MAX_RATE_VALUES
        derived = self._series.samples(rates, 0, END_OF_TIME_MS - 1) if small else []
        exact = {(item.key, item.host, item.role): summary(item) for item in derived}
        summaries = []
        for item in series:
            extent = extents.get(item.stored)
            if item.identity in exact and item.rate is not None:
                summaries.append(exact[item.identity])
            elif extent is None:
                summaries.append(SeriesSummary(*item.identity, 0, 0, 0, None, None, None))
            elif item.rate is None:
                summaries.append(
                    SeriesSummary(
                        *item.identity,
                        extent.n,
                        extent.first_ms,
                        extent.last_ms,
                        extent.min,
                        extent.max,
                        extent.last,
                    )
                )
            else:
                span = (extent.n - 1, extent.first_ms, extent.last_ms)
                summaries.append(SeriesSummary(*item.identity, *span, None, None, None))
        return summaries

    def plan(self) -> RunPlan:
        """See `RunView.plan`."""
        plan = self._plans.of(self._number)
        return plan.update(self._lanes, self._last_times(), self._series.values_since)

    def newest_ms(self) -> int:
        """See `RunView.newest_ms`."""
        times = self._last_times()
        return max((times.get(lane.id, 0) for lane in self._lanes if lane.sampled), default=0)

    def _last_times(self) -> dict[int, int]:
        return self._store.last_times([lane.id for lane in self._lanes])

    def extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        """See `RunView.extent`."""
        last_times = self._last_times()
        cached = self._extents.get(selection)
        if cached is None or cached[0] != last_times:  # nothing is older than what was read, or it came late
            cached = self._extents[selection] = last_times, self._read_extent(selection)
        return cached[1]

    def _read_extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        requested = self._limit(self._requested_series(selection))
        extents = self._series.extents(requested, self._started_ms) if requested else {}
        if not extents:
            return None
        first = [
            extents[item.stored].first_ms
            for item in requested
            if item.rate is None and item.stored in extents
        ]
        rates = [item for item in requested if item.rate is not None and item.stored in extents]
        if rates:  # a rate starts with the second sample of its counter
            begin = min(extents[rate.stored].first_ms for rate in rates)
            starts = self._series.samples(rates, begin, begin + _LOOK_BACK_MS)
            first += [int(series.t[0]) for series in starts if len(series)]
        return (min(first), max(extent.last_ms for extent in extents.values())) if first else None

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        """See `RunView.samples`."""
        requested = self._requested_series(selection)
        if at_most is not None:
            if len(requested) > _MAX_SERIES:
                raise TooMuch(
                    f"{len(requested):,} series; a response holds at most {_MAX_SERIES:,}: "
                    "select some with `keys`"
                )
            counts = self._series.counts(requested, t0, t1)
            check_value_count(at_most, sum(counts.get(item.stored, 0) for item in requested))
        return [series for series in self._series.samples(requested, t0, t1) if len(series)]

    def read_chart(
        self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int
    ) -> ChartData:
        """See `RunView.read_chart`."""
        requested = self._limit(self._requested_series(selection))
        buckets = self._series.buckets([item for item in requested if item.rate is None], on)
        if all(int(item.buckets.n.sum()) <= max_points for item in buckets):
            # Maybe few enough: these counts are without gaps, and the grid begins before t0.
            samples = [series for series in self._series.samples(requested, t0, t1) if len(series)]
            if all(len(series) <= max_points for series in samples):
                return ChartData(samples)
        rates = self._series.buckets([item for item in requested if item.rate is not None], on)
        by_identity = {(item.key, item.host, item.role): item for item in (*buckets, *rates)}
        return ChartData(
            [], [by_identity[item.identity] for item in requested if item.identity in by_identity]
        )

    def read_buckets(self, selection: SeriesSelection, on: Grid) -> list[BucketedSeries]:
        """See `RunView.read_buckets`."""
        return self._series.buckets(self._limit(self._requested_series(selection)), on)

    def sampled_keys(self) -> set[str]:
        """See `RunView.sampled_keys`."""
        requested = requested_series(self._lanes, lambda lane, key: True)
        return {item.identity[0] for item in requested}

    # Logged values and console output

    def logged_columns(self, names: Iterable[str]) -> list[LoggedColumns]:
        """See `RunView.logged_columns`."""
        requested = set(names)
        columns = []
        for lane in self._lanes:
            if STEP in lane.logged:
                keys = [
                    key for key in lane.logged if key not in RESERVED and (not requested or key in requested)
                ]
                columns.append(LoggedColumns(lane.host, lane.rank, self._read_logged(lane, keys, 0)))
        return columns

    def logged_names(self) -> set[str]:
        """See `RunView.logged_names`."""
        logged = {key for lane in self._lanes if STEP in lane.logged for key in lane.logged}
        return logged - RESERVED

    def _read_logged(
        self, lane: Lane, keys: Iterable[str], t0: int, t1: int = END_OF_TIME_MS - 1
    ) -> dict[str, tuple[Floats, Floats, Floats]]:
        """Name → (steps, times, values) of the rows from `t0` to `t1`."""
        numbers = [lane.logged[key] for key in (*RESERVED, *keys) if key in lane.logged]
        result = self._store.read([lane.id], numbers, t0, t1)
        self._series.note(result.damaged)
        columns = {item.metric: (item.t, item.values) for item in result.series}
        if lane.logged[STEP] not in columns:
            return {}
        rows, steps = columns[lane.logged[STEP]]
        times = true_times(rows, columns.get(lane.logged.get(TRUE_TIME, -1)))
        by_name = {}
        for key in keys:
            t, values = columns.get(lane.logged[key], _NOTHING)
            position = np.searchsorted(rows, t)
            position = np.minimum(position, len(rows) - 1)
            # A client may send the same key as a series too, and stored steps may be out of range.
            is_row = (rows[position] == t) & (np.abs(steps[position]) <= MAX_STEP)
            if is_row.any():
                by_name[key] = steps[position[is_row]], times[position[is_row]], values[is_row]
        return by_name

    def console(self, max_bytes: int) -> tuple[bool, list[ConsolePiece]]:
        """See `RunView.console`."""
        output = self._metadata_store.console.tail(self._number, max_bytes)
        writers = {
            writer.id: writer for writer in self._metadata_store.writers.of_runs([self._number])[self._number]
        }
        pieces = [
            ConsolePiece(
                piece.time_ms,
                STREAMS[piece.stream],
                piece.text,
                writers[piece.writer_id].host,
                writers[piece.writer_id].rank,
            )
            for piece in output.pieces
            if piece.writer_id in writers
        ]
        return output.dropped_bytes > 0, pieces

    def console_pieces(self) -> Iterator[ConsolePiece]:
        """See `RunView.console_pieces`."""
        yield from self.console(KEPT_BYTES)[1]

    # News

    def position(self) -> Position:
        """See `RunView.position`."""
        return {str(lane): time_ms for lane, time_ms in self._last_times().items()}

    def _news(self, before: Position, now: Position) -> Iterator[tuple[Lane, int, int]]:
        """Yield the lanes with news, and the times of the first and the last."""
        for lane in self._lanes:
            seen, newest = before.get(str(lane.id), -1), now.get(str(lane.id), -1)
            if newest > seen:
                yield lane, seen + 1, newest

    def media_keys(self) -> list[MediaKey]:
        """See `RunView.media_keys`."""
        return self._metadata_store.media.keys(self._number)

    def media(self, selection: MediaSelection) -> MediaPage:
        """See `RunView.media`."""
        steps = selection.first_step, selection.last_step
        pages = selection.skip, selection.limit
        return MediaPage(*self._metadata_store.media.page(self._number, selection.key, *steps, *pages))

    def media_steps(self, key: str) -> list[float]:
        """See `RunView.media_steps`."""
        return self._metadata_store.media.steps(self._number, key)

    def logged_others(self, selection: ValueSelection, limit: int) -> list[LoggedValue]:
        """See `RunView.logged_others`."""
        return self._metadata_store.media.values(self._number, selection, limit)

    def other_names(self) -> list[str]:
        """See `RunView.other_names`."""
        return self._metadata_store.media.value_names(self._number)

    def saved_files(self) -> list[SavedFile]:
        """See `RunView.saved_files`."""
        return self._metadata_store.media.files(self._number)

    def artifacts(self, relation: ArtifactRelation, skip: int, limit: int) -> RunArtifactPage:
        """See `RunView.artifacts`."""
        artifacts = self._metadata_store.artifacts
        read = artifacts.versions.made_by if relation == "logged" else artifacts.lineage.used_by
        rows, total = read(self._number, skip, limit)
        memberships = artifacts.collections.memberships(row.id for row in rows)
        makers = {row.run_id for row in rows if row.run_id not in (None, self._number)}
        made_by = {number: self._metadata_store.runs.place(number) for number in makers if number is not None}
        run_artifacts = []
        for row in rows:
            if not memberships[row.id]:  # it was deleted a moment ago
                continue
            maker = None if row.run_id is None else made_by.get(row.run_id)
            if maker is not None and maker.deleted:
                maker = None
            run = self.run_id if row.run_id == self._number else None if maker is None else maker.uid
            version = memberships[row.id][0].as_read(run)
            run_artifacts.append(RunArtifact(version, row.collection.project_id, maker))
        return RunArtifactPage(run_artifacts, total)

    def content(
        self, sha256: str, check_artifact: Callable[[int], None] | None = None
    ) -> OpenedContent | None:
        """See `RunView.content`."""
        if check_artifact is not None and self._metadata_store.media.is_of_artifact(self._number, sha256):
            run = self._metadata_store.runs.place(self._number)
            if run is None:  # deleted for good a moment ago
                return None
            check_artifact(run.project_id)
        return None if self._files is None else self._files.open(self._number, sha256)

    def count_between(self, before: Position, now: Position) -> int:
        """See `RunView.count_between`."""
        total = 0
        for lane, t0, t1 in self._news(before, now):
            on = Grid(t0, t1 - t0 + 1, 1)
            result = self._store.read_buckets([lane.id], None, on)
            total += max((int(item.buckets.n.sum()) for item in result.series), default=0)
        return total

    def samples_between(self, before: Position, now: Position) -> Iterator[NewSample]:
        """See `RunView.samples_between`."""
        for lane, t0, t1 in self._news(before, now):
            keys = {number: key for key, number in lane.sampled.items()}
            if not keys:
                continue
            rows: dict[int, dict[str, float]] = {}
            for item in self._store.read([lane.id], list(keys), t0, t1).series:
                for t, value in zip(item.t.tolist(), item.values.tolist(), strict=True):
                    rows.setdefault(t, {})[keys[item.metric]] = value
            for t in sorted(rows):
                yield NewSample(f"{lane.id}.{self._writer_index(lane, t)}", lane.host, lane.role, t, rows[t])

    def _writer_index(self, lane: Lane, t: int) -> int:
        """Return which of the lane's writers a sample is from: a restarted monitor is a new writer."""
        return sum(writer.started_ms <= t for writer in lane.writers[1:])

    def newest(self, source: str, before: Position) -> dict[str, tuple[int, float]]:
        """See `RunView.newest`."""
        number, _, index = source.partition(".")
        lane = next(lane for lane in self._lanes if str(lane.id) == number)
        t1 = before.get(number, -1)
        t0 = max(t1 - _LOOK_BACK_MS, lane.writers[int(index)].started_ms if int(index) else 0)
        if t1 < t0:
            return {}
        keys = {metric: key for key, metric in lane.sampled.items()}
        return {
            keys[item.metric]: (int(item.t[-1]), float(item.values[-1]))
            for item in self._store.read([lane.id], list(keys), t0, t1).series
        }

    def rows_between(self, before: Position, now: Position) -> Iterator[NewRow]:
        """See `RunView.rows_between`."""
        for lane, t0, t1 in self._news(before, now):
            if STEP not in lane.logged:
                continue
            keys = [key for key in lane.logged if key not in RESERVED]
            rows: dict[tuple[float, float], dict[str, float]] = {}
            for key, (steps, times, values) in self._read_logged(lane, keys, t0, t1).items():
                for step, t, value in zip(steps.tolist(), times.tolist(), values.tolist(), strict=True):
                    rows.setdefault((t, step), {})[key] = value
            for t, step in sorted(rows):
                yield NewRow(lane.host, lane.rank, step, int(t), rows[t, step])


_NOTHING: tuple[Integers, Floats] = (np.empty(0, np.int64), np.empty(0))
