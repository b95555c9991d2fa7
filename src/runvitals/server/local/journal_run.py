"""A run's journal as the API looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from runvitals.buckets import Grid, reduce
from runvitals.model.event import Event
from runvitals.model.run import Run
from runvitals.model.state import TRAIN
from runvitals.query.history import History
from runvitals.query.reader import RunReader
from runvitals.query.series import Columns, Series
from runvitals.server.library import (
    BucketedSeries,
    Calls,
    ChartData,
    NewCall,
    NewSample,
    Piece,
    Position,
    SeriesSelection,
    SeriesSummary,
    TooMuch,
    device_index,
)


class JournalView:
    """A `RunView` over the columns of a `RunReader`, which somebody else keeps up to date."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader

    @property
    def run_id(self) -> str:
        return self.reader.run_id

    def run(self, now_ms: int) -> Run:
        return self.reader.run(now_ms)

    def events(self, now_ms: int, skip: int, limit: int) -> list[Event]:
        events = self.reader.run(now_ms).events
        end = max(0, len(events) - skip)
        return events[max(0, end - limit) : end]

    def note_problems(self) -> Mapping[str, None]:
        return dict.fromkeys(self.reader.problems())

    def position(self) -> Position:
        return dict(self.reader.last_seq)

    def _columns(self, selection: SeriesSelection) -> Columns:
        groups = {
            place: [name for name in names if self._has(name, selection)]
            for place, names in self.reader.groups().items()
        }
        wanted = selection.wanted
        if selection.device is not None:
            device = selection.device
            return self.reader.samples.columns(
                groups, lambda key: device_index(key) == device and wanted(key)
            )
        return self.reader.samples.columns(groups, wanted)

    def _has(self, name: str, selection: SeriesSelection) -> bool:
        writer = self.reader.facts.writer(name)
        if selection.host is not None and writer.host != selection.host:
            return False
        if not selection.wants_writer(name):
            return False
        if selection.rank is None:
            return True
        if writer.role == TRAIN:
            return writer.rank == selection.rank
        return writer.host in {rank.host for rank in self.reader.run(0).ranks if rank.rank == selection.rank}

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        return [summary(one) for one in self._columns(selection).series[skip:]]

    def extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        series = [one for one in self._columns(selection).series if len(one)]
        if not series:
            return None
        return min(int(one.t[0]) for one in series), max(int(one.t[-1]) for one in series)

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        found = [within(one, t0, t1) for one in self._columns(selection).series]
        check_value_count(at_most, sum(len(one) for one in found))
        return [one for one in found if len(one)]

    def charted(self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int) -> ChartData:
        series = self._columns(selection).series
        cut = [within(one, t0, t1) for one in series]
        if all(len(one) <= max_points for one in cut):
            return ChartData([one for one in cut if len(one)])
        buckets = [
            BucketedSeries(one.key, one.host, one.role, reduce(on, one.t, one.values)) for one in series
        ]
        return ChartData([], [one for one in buckets if len(one.buckets.t)])

    def calls(self, names: Iterable[str]) -> list[Calls]:
        wanted = set(names)
        return [self._calls(name, history, wanted) for name, history in self.reader.histories.items()]

    def _calls(self, name: str, history: History, wanted: set[str]) -> Calls:
        writer = self.reader.facts.writer(name)
        columns = {}
        for key in history.keys:
            if not wanted or key in wanted:
                steps, times, values = (np.array(column, np.float64) for column in history.column(key))
                columns[key] = (steps, times, values)
        return Calls(writer.host, writer.rank, columns)

    def printed(self) -> tuple[bool, list[Piece]]:
        pieces = []
        for piece in self.reader.console.pieces():
            writer = self.reader.facts.writer(piece.writer)
            pieces.append(Piece(piece.time_ms, piece.stream, piece.text, writer.host, writer.rank))
        return self.reader.console.cut, pieces

    # What is new. The reader takes nothing in between: it is at `now`.

    def count_between(self, before: Position, now: Position) -> int:
        writers = self.reader.samples.writers.items()
        return sum(writer.count_after(before.get(name, -1)) for name, writer in writers)

    def samples_between(self, before: Position, now: Position) -> Iterator[NewSample]:
        for name, writer in self.reader.samples.writers.items():
            about = self.reader.facts.writer(name)
            for time_ms, values in writer.after(before.get(name, -1)):
                yield NewSample(name, about.host, about.role, time_ms, values)

    def newest(self, source: str, before: Position) -> dict[str, tuple[int, float]]:
        return self.reader.samples.writers[source].newest(before.get(source, -1))

    def calls_between(self, before: Position, now: Position) -> Iterator[NewCall]:
        for name, history in self.reader.histories.items():
            about = self.reader.facts.writer(name)
            for step, time_ms, values in history.after(before.get(name, -1)):
                yield NewCall(about.host, about.rank, step, time_ms, values)


def summary(series: Series) -> SeriesSummary:
    """What a series amounts to. One without any value is from 0 to 0."""
    there = ~np.isnan(series.values)
    t, values = series.t[there], series.values[there]
    place = (series.key, series.host, series.role)
    if not len(values):
        return SeriesSummary(*place, 0, 0, 0, None, None, None)
    extremes = float(values.min()), float(values.max()), float(values[-1])
    return SeriesSummary(*place, len(values), int(t[0]), int(t[-1]), *extremes)


def within(one: Series, t0: int, t1: int) -> Series:
    """The part of a series from `t0` to `t1`, both included."""
    first, last = np.searchsorted(one.t, t0, side="left"), np.searchsorted(one.t, t1, side="right")
    return Series(one.key, one.host, one.role, one.t[first:last], one.values[first:last])


def check_value_count(at_most: int | None, total: int) -> None:
    """
    Raises:
        TooMuch: with what to do instead.
    """
    if at_most is not None and total > at_most:
        raise TooMuch(
            f"{total:,} values at full resolution; one answer holds {at_most:,}: "
            "ask for fewer keys or a shorter time, or use `runvitals export`"
        )
