"""Series of a run's journal as columns that grow with it: a poll costs the new samples only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runvitals.readers.journals.history import History
from runvitals.readers.journals.rates import derive, rate_of
from runvitals.readers.journals.series import NAN, Groups, RunSamples, SampleTable
from runvitals.terminal.leet.charts import SeriesName
from runvitals.terminal.leet.series_column import SeriesColumn


class ProcessHistory:
    """The logged values of one process by name: over steps, and over time."""

    def __init__(self) -> None:
        self._seq = -1
        self.columns: dict[str, tuple[SeriesColumn, SeriesColumn]] = {}

    def update(self, history: History) -> None:
        """Add the rows that were logged since the last call."""
        if not history.seqs or history.seqs[-1] == self._seq:
            return
        new: dict[str, tuple[list[float], list[float], list[float]]] = {}
        for step, time_ms, values in history.after(self._seq):
            for key, value in values.items():
                steps, times, column = new.setdefault(key, ([], [], []))
                steps.append(step)
                times.append(time_ms)
                column.append(value)
        for key, (steps, times, column) in new.items():
            by_step, by_time = self.columns.setdefault(key, (SeriesColumn(), SeriesColumn()))
            by_step.extend(steps, column)
            by_time.extend(times, column)
        self._seq = history.seqs[-1]


class SampledSeries:
    """A series of system metrics, across restarts of its host's monitor.

    Args:
        name: the key of a recorded value or of a rate, its host and role.
    """

    def __init__(self, name: SeriesName) -> None:
        self._name = name
        self._read: dict[int, int] = {}  # rows that were read of each table
        self._last: tuple[float, float] | None = None
        self._writer = ""
        self._recorded_key: tuple[str, float | None] | None = None
        self.column = SeriesColumn()

    def update(self, samples: RunSamples, groups: Groups) -> None:
        """Add what was sampled since the last call."""
        names = [
            name for name in groups.get((self._name.origin, self._name.role), ()) if name in samples.writers
        ]
        if self._recorded_key is None:
            self._recorded_key = _recorded_key(self._name.key, (samples.writers[name].keys for name in names))
            if self._recorded_key is None:
                return
        for writer in names:
            times, values = self._new(samples.writers[writer].tables_of(self._recorded_key[0]))
            if not len(times):
                continue
            if self._last is not None and times[0] < self._last[0]:
                self._read_again(samples, groups)
                return
            if self._writer not in ("", writer) and self._last is not None:
                self._add([(self._last[0] + float(times[0])) / 2], [NAN])
            self._writer = writer
            self._add(times, values)

    def _new(self, tables: Sequence[SampleTable]) -> tuple[Any, Any]:
        """Return times and values of the rows that were not read yet, by time."""
        assert self._recorded_key is not None
        parts = []
        for table in tables:
            start, width = self._read.get(id(table), 0), len(table.keys)
            self._read[id(table)] = end = len(table.times)
            if start < end:
                index = table.position(self._recorded_key[0])
                rows = np.frombuffer(table.rows)[start * width : end * width]
                parts.append((np.array(table.times[start:end], np.float64), rows[index::width].copy()))
        if len(parts) < 2:
            return parts[0] if parts else ((), ())
        times, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], values[order]

    def _add(self, times: Any, values: Any) -> None:
        assert self._recorded_key is not None
        factor = self._recorded_key[1]
        if factor is None:
            self.column.extend(times, values)
        else:
            before = ([], []) if self._last is None else ([self._last[0]], [self._last[1]])
            t, counts = np.concatenate([before[0], times]), np.concatenate([before[1], values])
            self.column.extend(*derive(t, counts, factor))
        self._last = (float(times[-1]), float(values[-1]))

    def _read_again(self, samples: RunSamples, groups: Groups) -> None:
        """Read everything from the start: a clock was set back, or two monitors wrote at the same time."""
        assert self._recorded_key is not None
        group = (self._name.origin, self._name.role)
        key, factor = self._recorded_key
        for series in samples.each({group: groups[group]}, key.__eq__):
            self._last = (float(series.t[-1]), float(series.values[-1]))
            recorded = (series.t, series.values)
            self.column.replace(*(recorded if factor is None else derive(*recorded, factor)))


def _recorded_key(key: str, keys: Iterable[Iterable[str]]) -> tuple[str, float | None] | None:
    """Return the recorded key of a series; with a factor if the series is the rate of a counter."""
    for recorded in (name for group in keys for name in group):
        rate = rate_of(recorded)
        if recorded == key and rate is None:
            return recorded, None
        if rate is not None and rate.key == key:
            return recorded, rate.factor
    return None
