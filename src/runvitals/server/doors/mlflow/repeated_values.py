"""Several values of a metric with the same timestamp and step: MLflow keeps each of them, and each once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from runvitals.server.doors.mlflow.metric_columns import MetricColumns

MAX_VALUES: Final = 10_000
"""The most values of a metric with the same timestamp and step."""
TimesOf = Callable[[int, int], list[int]]
"""The times of the stored rows with a timestamp and step."""
ReadValues = Callable[[Sequence[str], int, int], Mapping[str, Mapping[int, float]]]
"""Reads values of metrics from one time to another, both included: by name and time."""
_NAN: Final = "NaN"


def beside_stored(sent: MetricColumns, times_of: TimesOf, read: ReadValues) -> MetricColumns:
    """Return the values, numbered so that none replaces another one that is stored.

    One that is stored already has the number of its row. Those beyond `MAX_VALUES` are left out.

    Args:
        sent: every value once.
    """
    rows = list(zip(sent.timestamps.tolist(), sent.steps.tolist(), strict=True))
    repeated = {row: times[:MAX_VALUES] for row in set(rows) if (times := times_of(*row))}
    if not repeated:
        return sent
    is_known = np.array([row in repeated for row in rows], bool)
    names = [sent.names[index] for index in np.unique(sent.name[is_known]).tolist()]
    first, last = min(map(min, repeated.values())), max(map(max, repeated.values()))
    stored = read(names, first, last)
    repeats = np.zeros(len(rows), np.int64) if sent.repeats is None else sent.repeats.copy()
    cells: dict[tuple[str, tuple[int, int]], _Cells] = {}
    for index in np.flatnonzero(is_known).tolist():
        name, row, value = sent.names[sent.name[index]], rows[index], float(sent.values[index])
        metric_cells = cells.get((name, row))
        if metric_cells is None:
            metric_cells = cells[name, row] = _Cells(repeated[row], stored.get(name, {}))
        repeats[index] = metric_cells.row_of(value)
    return sent.where(repeats < MAX_VALUES, repeats)


class _Cells:
    """The values of a metric in the rows of a timestamp and step.

    Args:
        times: of the rows.
        stored: the values of the metric, by time.
    """

    def __init__(self, times: Sequence[int], stored: Mapping[int, float]) -> None:
        self._row_by_value = {_comparable(stored[t]): index for index, t in enumerate(times) if t in stored}
        self._free = [index for index, t in enumerate(times) if t not in stored]
        self._free.reverse()
        self._rows = len(times)

    def row_of(self, value: float) -> int:
        """Return the row of a value: the one that has it, or a free one."""
        index = self._row_by_value.get(_comparable(value))
        if index is None:
            index = self._row_by_value[_comparable(value)] = self._free_row()
        return index

    def _free_row(self) -> int:
        if self._free:
            return self._free.pop()
        self._rows += 1
        return self._rows - 1


def _comparable(value: float) -> float | str:
    return _NAN if math.isnan(value) else value
