"""The rows of `log()` as columns: one row per call and one column per name, for each process."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from runvitals.journal.records import Record

_EXACT: Final = 1 << 53
"""Larger integers are not exact as float64."""
_MAX_OTHERS: Final = 20_000
_MAX_OTHER_BYTES: Final = 8 << 20


class OtherValue(NamedTuple):
    """A value that charts cannot show as it is."""

    key: str
    step: float
    time_ms: int
    value: Any

    @property
    def nbytes(self) -> int:
        """The bytes in memory, approximately."""
        return 200 + len(self.value if isinstance(self.value, str) else repr(self.value))


class History:
    """The logged rows of one process.

    Columns hold numbers only. Numbers in nested dictionaries are columns with dotted names. Of other values
    the newest are kept; all of them are in the journal.

    Attributes:
        others: those values, in the order of logging.
        left_out: how many older ones there were.
    """

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self.seqs = array("q")
        self.steps = array("d")
        self.times = array("q")
        self._columns: dict[str, tuple[array[int], array[float]]] = {}
        self.others = deque[OtherValue]()
        self.left_out = self._other_bytes = 0

    def add(self, record: Record) -> None:
        """Add a HISTORY record. A row without a step gets its index as the step."""
        row = len(self.times)
        step = record.value.get("step")
        self.steps.append(float(row if step is None else step))
        self.seqs.append(record.seq)
        self.times.append(record.time_ms)
        data = record.value.get("data") or {}
        for key, other in others_of(data).items():
            self._keep(OtherValue(key, self.steps[row], record.time_ms, other))
        for key, value in numbers(data):
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = (array("q"), array("d"))
            column[0].append(row)
            column[1].append(value)

    def _keep(self, other: OtherValue) -> None:
        self.others.append(other)
        self._other_bytes += other.nbytes
        while len(self.others) > _MAX_OTHERS or self._other_bytes > _MAX_OTHER_BYTES:
            self._other_bytes -= self.others.popleft().nbytes
            self.left_out += 1

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
        columns = sum(16 * len(values) for _, values in self._columns.values())
        return 24 * len(self.times) + columns + self._other_bytes


def numbers(data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Return the numbers of a row, by dotted name.

    Example:
        >>> dict(numbers({"loss": 0.5, "train": {"acc": 1}, "note": "x"}))
        {'loss': 0.5, 'train.acc': 1.0}
    """
    return ((key, float(value)) for key, value in leaves(data) if isinstance(value, (bool, int, float)))


def others_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what charts cannot show as it is: texts, lists, booleans, null, integers above 2⁵³.

    Histograms of arrays are left out: they are media, too.

    Example:
        >>> others_of({"loss": 0.5, "note": "x", "train": {"best": True}})
        {'note': 'x', 'train.best': True}
    """
    others = {key: value for key, value in data.items() if _is_other(value)}
    if any(isinstance(value, dict) for value in others.values()):
        others = {key: value for key, value in leaves(others) if _is_other(value)}
    return others


def _is_other(value: object) -> bool:
    if isinstance(value, dict):
        return "_type" not in value
    return type(value) is not float and (type(value) is not int or abs(value) > _EXACT)


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
