"""The lowest and highest values of the series in a run's journal. Each sample is read once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.readers.journals.series import RunSamples, SampleTable, WriterSamples
from runvitals.server.charts.run_plan import NO_VALUES, ValueRange

_ROWS_AT_ONCE = 10_000


class _TableRanges:
    """The ranges of a table's columns, up to some row."""

    def __init__(self, width: int) -> None:
        self._rows = 0
        self.n = np.zeros(width, np.int64)
        self.low: Floats = np.full(width, np.nan)
        self.high: Floats = np.full(width, np.nan)

    def update(self, table: SampleTable) -> None:
        """Take the rows that were added."""
        width = len(table.keys)
        while width and self._rows < len(table.times):
            end = min(len(table.times), self._rows + _ROWS_AT_ONCE)
            # Not held: an array that lends its memory cannot grow.
            rows = np.frombuffer(table.rows, np.float64)[self._rows * width : end * width].reshape(-1, width)
            self.n += np.count_nonzero(~np.isnan(rows), axis=0)
            self.low = np.fmin(self.low, np.fmin.reduce(rows, axis=0))
            self.high = np.fmax(self.high, np.fmax.reduce(rows, axis=0))
            self._rows = end


class ValueRanges:
    """The ranges of all values of a run.

    Example:
        >>> ranges = ValueRanges()
        >>> ranges.update(reader.samples)
        >>> ranges.of([reader.samples.writers["monitor.node1.19f3a"]])["cpu"]
        ValueRange(n=3600, low=0.0, high=98.5)
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[str, tuple[str, ...]], _TableRanges] = {}

    def update(self, samples: RunSamples) -> None:
        """Take the samples that were added."""
        for writer in samples.writers.values():
            for keys, table in writer.tables.items():
                ranges = self._tables.get((writer.writer, keys))
                if ranges is None:
                    ranges = self._tables[writer.writer, keys] = _TableRanges(len(keys))
                ranges.update(table)

    def of(self, writers: Iterable[WriterSamples]) -> dict[str, ValueRange]:
        """Return the ranges by key, of several writers together."""
        by_key: dict[str, ValueRange] = {}
        for writer in writers:
            for keys in writer.tables:
                ranges = self._tables[writer.writer, keys]
                columns = zip(keys, ranges.n.tolist(), ranges.low.tolist(), ranges.high.tolist(), strict=True)
                for key, n, low, high in columns:
                    by_key[key] = by_key.get(key, NO_VALUES).with_values(n, low, high)
        return by_key
