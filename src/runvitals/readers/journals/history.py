"""The rows of `log()` as columns: one row per call and one column per name, for each process."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.journal.records import Record


class History:
    """The logged rows of one process.

    Columns hold numbers only; other values stay in the journal. Numbers in nested dictionaries are columns
    with dotted names.
    """

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self.seqs = array("q")
        self.steps = array("d")
        self.times = array("q")
        self._columns: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, record: Record) -> None:
        """Add a HISTORY record. A row without a step gets its index as the step."""
        row = len(self.times)
        step = record.value.get("step")
        self.steps.append(float(row if step is None else step))
        self.seqs.append(record.seq)
        self.times.append(record.time_ms)
        for key, value in numbers(record.value.get("data") or {}):
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = (array("q"), array("d"))
            column[0].append(row)
            column[1].append(value)

    @property
    def keys(self) -> list[str]:
        """The names, in the order they were first logged."""
        return list(self._columns)

    def column(self, key: str) -> tuple[list[float], list[int], list[float]]:
        """Return steps, times in ms and values of a name in the order of logging, or raise KeyError."""
        rows, values = self._columns[key]
        return [self.steps[row] for row in rows], [self.times[row] for row in rows], values.tolist()

    def newest(self, key: str) -> tuple[int, float]:
        """Return the time in ms and the value that was logged last under a name, or raise KeyError."""
        rows, values = self._columns[key]
        return self.times[rows[-1]], values[-1]

    def after(self, seq: int) -> Iterator[tuple[float, int, dict[str, float]]]:
        """(step, time, numbers) of the rows after a sequence number."""
        start = bisect_right(self.seqs, seq)
        rows: list[dict[str, float]] = [{} for _ in range(start, len(self.seqs))]
        for key, (indexes, values) in self._columns.items():
            for i in range(bisect_right(indexes, start - 1), len(indexes)):
                rows[indexes[i] - start][key] = values[i]
        for offset, row in enumerate(rows):
            yield self.steps[start + offset], self.times[start + offset], row

    @property
    def nbytes(self) -> int:
        """The bytes in memory, approximately."""
        return 24 * len(self.times) + sum(16 * len(values) for _, values in self._columns.values())


def numbers(data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Return the numbers of a row, by dotted name.

    Example:
        >>> dict(numbers({"loss": 0.5, "train": {"acc": 1}, "note": "x"}))
        {'loss': 0.5, 'train.acc': 1.0}
    """
    return ((key, float(value)) for key, value in leaves(data) if isinstance(value, (bool, int, float)))


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values of a row, by dotted name.

    Example:
        >>> dict(leaves({"loss": 0.5, "train": {"acc": 1}, "note": "x"}))
        {'loss': 0.5, 'train.acc': 1, 'note': 'x'}
    """
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
