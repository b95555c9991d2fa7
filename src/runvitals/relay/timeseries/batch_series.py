"""Converts batches to series: for each series its ascending times and its values.

For destinations that store series rather than samples. A value of None marks the end of a series, or a gap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import Any, NamedTuple

from runvitals.relay.batch import Batch, Samples
from runvitals.relay.timeseries.naming import LabeledSeries, Namer

Values = list[float | None]
_MAX_KEYS = 10_000  # remembered per writer, to end their series


class SeriesPoints(NamedTuple):
    """Points of one series. `start_ms` is when a counter started counting; 0 for gauges."""

    series: LabeledSeries
    times_ms: list[int]
    values: Values
    start_ms: int


class BatchSeries:
    """Converts the batches of a run to series.

    Args:
        state: JSON values kept between batches: the keys of each writer, the time of its last `log()` row,
            and when each host's counters started. Only `keep` changes it, so a retried batch yields the same
            series.
        naming: how keys are named at the destination.

    Example:
        >>> timeline = BatchSeries(context.state)
        >>> lines = timeline.lines(batch)
        >>> lines[0].series.family.name, lines[0].times_ms, lines[0].values
        ('runvitals_process_cpu_utilization_ratio', [1700000000000, 1700000001000], [0.5, 0.51])
        >>> timeline.keep(batch)
    """

    def __init__(self, state: dict[str, Any], naming: type[Namer] = Namer) -> None:
        self._keys: dict[str, list[str]] = state.setdefault("keys", {})
        self._log_ms: dict[str, int] = state.setdefault("log_ms", {})
        self._start_ms: dict[str, int] = state.setdefault("start_ms", {})
        self._naming = naming
        self._namers: dict[str, Namer] = {}

    def lines(self, batch: Batch) -> list[SeriesPoints]:
        """Return the series of a batch, each once."""
        namer = self._naming.of(batch, self._namers)
        start_ms = self._start(batch)
        lines_by_series = columns([table for table in batch.samples if len(table)])
        ended_ms = _end_ms(batch)
        if ended_ms is not None:
            _end(lines_by_series, self._keys.get(batch.writer.name, []), ended_ms)
        lines = [
            _line(namer.series(key), times, values, start_ms)
            for key, (times, values) in lines_by_series.items()
        ]
        return lines + self._logged_series(batch, namer)

    def advance(self, batch: Batch) -> None:
        """Update the state; call it when the batch has been delivered."""
        writer = batch.writer.name
        keys = self._keys.setdefault(writer, [])
        for table in batch.samples:
            if len(keys) < _MAX_KEYS:
                keys += dict.fromkeys(table.keys).keys() - set(keys)
        if _end_ms(batch) is not None:
            del self._keys[writer]
        if batch.logs:
            self._log_ms[writer] = self._log_times(batch)[-1]
        self._start_ms.setdefault(batch.writer.host, self._start(batch))

    def _start(self, batch: Batch) -> int:
        """Return when the host's counters started; a restarted monitor continues its predecessor's."""
        return self._start_ms.get(batch.writer.host) or batch.writer.started_ms

    def _log_times(self, batch: Batch) -> list[int]:
        """Return the times of log rows, strictly ascending, because a time identifies a row."""
        last_ms = self._log_ms.get(batch.writer.name, 0)
        times = []
        for row in batch.logs:
            last_ms = max(row.time_ms, last_ms + 1)
            times.append(last_ms)
        return times

    def _logged_series(self, batch: Batch, namer: Namer) -> list[SeriesPoints]:
        by_series: dict[LabeledSeries, tuple[list[int], Values]] = {}
        for row, time_ms in zip(batch.logs, self._log_times(batch), strict=True):
            numbers = [(namer.logged_series(name), value) for name, value in row.numbers().items()]
            if row.step is not None:
                numbers.append((namer.step, float(row.step)))
            for series, value in numbers:
                times, values = by_series.setdefault(series, ([], []))
                times.append(time_ms)
                values.append(value)
        return [SeriesPoints(series, times, values, 0) for series, (times, values) in by_series.items()]


Found = dict[str, tuple[list[int], Values]]


def columns(tables: Sequence[Samples]) -> Found:
    """Return the times, strictly ascending, and values of each key; NaN is a gap.

    A key may be in several tables, because slowly changing metrics are not in every sample. Of samples with
    the same time the last one is used.
    """
    parts: dict[str, list[tuple[int, list[float]]]] = {}
    for number, table in enumerate(tables):
        for key, column in table:
            parts.setdefault(key, []).append((number, column.tolist()))
    orders: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    by_series: Found = {}
    for key, pieces in parts.items():
        where = tuple(number for number, _ in pieces)
        if where not in orders:
            orders[where] = _order([tables[number] for number in where])
        times, order = orders[where]
        flat = [value for _, values in pieces for value in values]
        by_series[key] = (times, [flat[i] for i in order])
    return by_series


def _order(tables: Sequence[Samples]) -> tuple[list[int], list[int]]:
    """Return (times, the index of the row for each among the rows of all tables)."""
    rows: dict[int, tuple[int, int]] = {}
    pairs = [pair for table in tables for pair in zip(table.times_ms, table.seqs, strict=True)]
    for i, (time_ms, seq) in enumerate(pairs):
        if time_ms not in rows or rows[time_ms][0] < seq:
            rows[time_ms] = (seq, i)
    times = sorted(rows)
    return times, [rows[time_ms][1] for time_ms in times]


def _end(by_series: Found, keys: Iterable[str], ended_ms: int) -> None:
    """Mark the end of all series, because the run has ended."""
    for key in {**dict.fromkeys(keys), **by_series}:
        times, values = by_series.get(key, ([], []))
        last_ms = max(ended_ms, times[-1] + 1) if times else ended_ms
        by_series[key] = ([*times, last_ms], [*values, None])


def _line(series: LabeledSeries, times: list[int], values: Values, start_ms: int) -> SeriesPoints:
    """Convert to the series' unit; of consecutive gaps only the first is kept."""
    factor = series.factor
    counts = series.family.kind == "counter"
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values) and not isnan(sum(numbers)):
        scaled: Values = [value * factor for value in numbers] if factor != 1.0 else values
        return SeriesPoints(series, times, scaled, start_ms if counts else 0)
    kept_times: list[int] = []
    kept_values: Values = []
    for time_ms, value in zip(times, values, strict=True):
        gap = value is None or value != value
        if gap and kept_values and kept_values[-1] is None:
            continue
        kept_times.append(time_ms)
        kept_values.append(None if gap or value is None else value * factor)
    return SeriesPoints(series, kept_times, kept_values, start_ms if counts else 0)


def _end_ms(batch: Batch) -> int | None:
    """Return when the run ended on this host, if the batch contains its end."""
    ends = [note.time_ms for note in batch.notes_of("lifecycle") if note.value.get("what") == "end"]
    return ends[-1] if ends else None


def cut(lines: list[SeriesPoints], most: int) -> Iterator[list[SeriesPoints]]:
    """Split series by time into requests of at most `most` points, but at least one point per series."""
    if sum(len(line.times_ms) for line in lines) <= most:
        if lines:
            yield lines
        return
    times = sorted({time_ms for line in lines for time_ms in line.times_ms})
    step = max(most // len(lines), 1)
    for first in range(0, len(times), step):
        until = times[first + step] if first + step < len(times) else times[-1] + 1
        yield [part for part in (_between(line, times[first], until) for line in lines) if part.times_ms]


def _between(line: SeriesPoints, first_ms: int, until_ms: int) -> SeriesPoints:
    start, end = bisect_left(line.times_ms, first_ms), bisect_left(line.times_ms, until_ms)
    return line._replace(times_ms=line.times_ms[start:end], values=line.values[start:end])
