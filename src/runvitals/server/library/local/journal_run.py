"""The journal of a run as the API reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from math import inf

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Grid, reduce
from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.model.logged_media import LoggedValue, MediaKey, SavedFile, ValueSelection
from runvitals.model.run import Event, Run
from runvitals.model.state import TRAIN
from runvitals.readers.journals.artifacts import LocalArtifacts
from runvitals.readers.journals.console import KEPT_BYTES, Console, parse
from runvitals.readers.journals.history import History
from runvitals.readers.journals.rates import rate_of
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.series import Groups, Series
from runvitals.server.charts.run_plan import PlannedSeries, RunPlan, planned_series
from runvitals.server.charts.series import check_value_count, summary, within
from runvitals.server.library.local.contents import open_content
from runvitals.server.library.local.value_ranges import ValueRanges
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
    device_index,
)


class JournalView:
    """A `RunView` over the columns of a `RunReader`. The caller keeps the reader up to date."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self._ranges = ValueRanges()
        self._plan = RunPlan(())

    @property
    def run_id(self) -> str:
        """See `RunView.run_id`."""
        return self.reader.run_id

    @property
    def number(self) -> None:
        """See `RunView.number`."""
        return None

    def run(self, now_ms: int) -> Run:
        """See `RunView.run`."""
        return self.reader.run(now_ms)

    def events(self, now_ms: int, skip: int, limit: int) -> list[Event]:
        """See `RunView.events`."""
        events = self.reader.run(now_ms).events
        end = max(0, len(events) - skip)
        return events[max(0, end - limit) : end]

    def note_problems(self) -> Mapping[str, None]:
        """See `RunView.note_problems`."""
        return dict.fromkeys(self.reader.problems())

    def position(self) -> Position:
        """See `RunView.position`."""
        return dict(self.reader.last_seq)

    def _select(self, selection: SeriesSelection) -> tuple[Groups, Callable[[str], bool]]:
        """Return the writers and the keys of a selection, for `RunSamples`."""
        groups = {
            source: [name for name in names if self._is_selected(name, selection)]
            for source, names in self.reader.groups().items()
        }
        matches = selection.matches_key
        device = selection.device
        if device is None:
            return groups, matches
        return groups, lambda key: device_index(key) == device and matches(key)

    def _each(self, selection: SeriesSelection) -> Iterator[Series]:
        """Yield the selected series one by one, so that not all of a large run are copied at a time."""
        for series in self.reader.samples.each(*self._select(selection)):
            deadline.check()
            yield series

    def _is_selected(self, name: str, selection: SeriesSelection) -> bool:
        writer = self.reader.facts.writer(name)
        if selection.host is not None and writer.host != selection.host:
            return False
        if not selection.matches_writer(name):
            return False
        if selection.rank is None:
            return True
        if writer.role == TRAIN:
            return writer.rank == selection.rank
        return writer.host in {rank.host for rank in self.reader.run(0).ranks if rank.rank == selection.rank}

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        """See `RunView.summaries`."""
        return [summary(series) for series in islice(self._each(selection), skip, None)]

    def plan(self) -> RunPlan:
        """See `RunView.plan`."""
        samples = self.reader.samples
        self._ranges.update(samples)
        series: list[PlannedSeries] = []
        for (host, role), names in self.reader.groups().items():
            writers = [samples.writers[name] for name in names if name in samples.writers]
            series += planned_series(host, role, self._ranges.of(writers))
        if tuple(series) != self._plan.series:
            self._plan = RunPlan(series)
        return self._plan

    def newest_ms(self) -> int:
        """See `RunView.newest_ms`."""
        tables = (
            table for writer in self.reader.samples.writers.values() for table in writer.tables.values()
        )
        return max((table.times[-1] for table in tables if table.times), default=0)

    def extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        """See `RunView.extent`."""
        return self.reader.samples.extent(*self._select(selection))

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        """See `RunView.samples`."""
        series = [within(item, t0, t1) for item in self._each(selection)]
        check_value_count(at_most, sum(len(item) for item in series))
        return [item for item in series if len(item)]

    def read_chart(
        self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int
    ) -> ChartData:
        """See `RunView.read_chart`."""
        few: list[Series] | None = []
        buckets: list[BucketedSeries] = []
        for item in self._each(selection):
            cut = within(item, t0, t1)
            if len(cut) > max_points:
                few = None
            elif few is not None and len(cut):
                few.append(replace(cut, t=cut.t.copy(), values=cut.values.copy()))
            reduced = reduce(on, item.t, item.values)
            if len(reduced.t):
                buckets.append(BucketedSeries(item.key, item.host, item.role, reduced))
        return ChartData([], buckets) if few is None else ChartData(few)

    def read_buckets(self, selection: SeriesSelection, on: Grid) -> list[BucketedSeries]:
        """See `RunView.read_buckets`."""
        return _buckets(self._each(selection), on)

    def sampled_keys(self) -> set[str]:
        """See `RunView.sampled_keys`."""
        keys = {key for writer in self.reader.samples.writers.values() for key in writer.keys}
        return keys | {rate.key for rate in map(rate_of, keys) if rate is not None}

    def logged_columns(self, names: Iterable[str]) -> list[LoggedColumns]:
        """See `RunView.logged_columns`."""
        requested = set(names)
        return [
            self._logged_columns(name, history, requested) for name, history in self.reader.histories.items()
        ]

    def logged_names(self) -> set[str]:
        """See `RunView.logged_names`."""
        return {key for history in self.reader.histories.values() for key in history.keys}

    def _logged_columns(self, name: str, history: History, names: set[str]) -> LoggedColumns:
        writer = self.reader.facts.writer(name)
        columns = {}
        for key in history.keys:
            if not names or key in names:
                steps, times, values = (np.array(column, np.float64) for column in history.column(key))
                columns[key] = (steps, times, values)
        return LoggedColumns(writer.host, writer.rank, columns)

    def console(self, max_bytes: int) -> tuple[bool, list[ConsolePiece]]:
        """See `RunView.console`."""
        output = self.reader.console
        if max_bytes != KEPT_BYTES:
            output = Console(max_bytes)
            for record in read_run(self.reader.folder):
                if record.type == frames.CONSOLE:
                    deadline.check()
                    output.add(parse(record.value, record.writer))
        pieces = []
        for piece in output.pieces():
            writer = self.reader.facts.writer(piece.writer)
            pieces.append(ConsolePiece(piece.time_ms, piece.stream, piece.text, writer.host, writer.rank))
        return output.cut, pieces

    def console_pieces(self) -> Iterator[ConsolePiece]:
        """See `RunView.console_pieces`."""
        for record in read_run(self.reader.folder):
            if record.type == frames.CONSOLE:
                piece = parse(record.value, record.writer)
                writer = self.reader.facts.writer(piece.writer)
                yield ConsolePiece(piece.time_ms, piece.stream, piece.text, writer.host, writer.rank)

    def media_keys(self) -> list[MediaKey]:
        """See `RunView.media_keys`."""
        return self.reader.media.keys()

    def media(self, selection: MediaSelection) -> MediaPage:
        """See `RunView.media`."""
        first = -inf if selection.first_step is None else selection.first_step
        last = inf if selection.last_step is None else selection.last_step
        records = [
            media for media in self.reader.logged_media(selection.key) if first <= media.order[0] <= last
        ]
        return MediaPage(records[selection.skip : selection.skip + selection.limit], len(records))

    def media_steps(self, key: str) -> list[float]:
        """See `RunView.media_steps`."""
        return sorted({media.step for media in self.reader.logged_media(key) if media.step is not None})

    def logged_others(self, selection: ValueSelection, limit: int) -> list[LoggedValue]:
        """See `RunView.logged_others`. The newest ones are in memory; `runvitals export` reads the rest."""
        low = -inf if selection.first_step is None else selection.first_step
        high = inf if selection.last_step is None else selection.last_step
        selected = []
        for name, history in self.reader.histories.items():
            writer = self.reader.facts.writer(name)
            selected += [
                LoggedValue(writer.host, writer.rank, *other)
                for other in history.others
                if low <= other.step <= high and (not selection.keys or other.key in selection.keys)
            ]
        return sorted(selected, key=lambda value: (value.step, value.time_ms))[-limit:]

    def other_names(self) -> list[str]:
        """See `RunView.other_names`."""
        return sorted({other.key for history in self.reader.histories.values() for other in history.others})

    def saved_files(self) -> list[SavedFile]:
        """See `RunView.saved_files`."""
        return self.reader.media.files(self.reader.folder)

    def artifacts(self, relation: ArtifactRelation, skip: int, limit: int) -> RunArtifactPage:
        """See `RunView.artifacts`."""
        if not self.reader.media.artifacts():
            return RunArtifactPage([], 0)
        directory = os.path.dirname(os.path.dirname(self.reader.folder))
        artifacts = [
            RunArtifact(local.version, None)
            for local in LocalArtifacts(directory).versions()
            if (
                local.version.run == self.run_id
                if relation == "logged"
                else self.run_id in local.version.used_by
            )
        ]
        return RunArtifactPage(artifacts[skip : skip + limit], len(artifacts))

    def content(
        self, sha256: str, check_artifact: Callable[[int], None] | None = None
    ) -> OpenedContent | None:
        """See `RunView.content`."""
        if not self.reader.media.names(sha256):
            return None
        return open_content(self.reader.folder, sha256)

    # News. The reader is not polled between two of these calls, so its end is `now`.

    def count_between(self, before: Position, now: Position) -> int:
        """See `RunView.count_between`."""
        writers = self.reader.samples.writers.items()
        return sum(writer.count_after(before.get(name, -1)) for name, writer in writers)

    def samples_between(self, before: Position, now: Position) -> Iterator[NewSample]:
        """See `RunView.samples_between`."""
        for name, writer in self.reader.samples.writers.items():
            about = self.reader.facts.writer(name)
            for time_ms, values in writer.after(before.get(name, -1)):
                yield NewSample(name, about.host, about.role, time_ms, values)

    def newest(self, source: str, before: Position) -> dict[str, tuple[int, float]]:
        """See `RunView.newest`."""
        return self.reader.samples.writers[source].newest(before.get(source, -1))

    def rows_between(self, before: Position, now: Position) -> Iterator[NewRow]:
        """See `RunView.rows_between`."""
        for name, history in self.reader.histories.items():
            about = self.reader.facts.writer(name)
            for step, time_ms, values in history.after(before.get(name, -1)):
                yield NewRow(about.host, about.rank, step, time_ms, values)


def _buckets(series: Iterable[Series], on: Grid) -> list[BucketedSeries]:
    series_in_buckets = [
        BucketedSeries(item.key, item.host, item.role, reduce(on, item.t, item.values)) for item in series
    ]
    return [item for item in series_in_buckets if len(item.buckets.t)]
