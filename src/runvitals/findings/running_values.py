"""What a training logs, as columns that grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runvitals.findings.training import LoggedColumn
from runvitals.findings.windows import Floats, Integers

MAX_ROWS = 100_000
"""Of a name; then every second row of the older half is dropped."""
MAX_NAMES = 100


class RunningValues:
    """The logged numbers of a run, by name."""

    def __init__(self) -> None:
        self._columns: dict[str, _GrowingColumn] = {}
        self.fresh_steps_ms: list[int] = []
        self._last_step = -1

    def add(self, time_ms: int, step: int | None, data: Mapping[str, Any]) -> None:
        """Take a row of `log()`."""
        if step is None or step > self._last_step:
            self.fresh_steps_ms.append(time_ms)
            self._last_step = self._last_step if step is None else step
        for name, value in data.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                column = self._columns.get(name)
                if column is None:
                    if len(self._columns) >= MAX_NAMES:
                        continue
                    column = self._columns[name] = _GrowingColumn()
                column.append(time_ms, -1 if step is None else step, float(value))

    def columns(self) -> dict[str, LoggedColumn]:
        """Return all columns, ordered by time."""
        return {name: column.ordered() for name, column in self._columns.items()}


class _GrowingColumn:
    """Times, steps and values in arrays with room for more."""

    def __init__(self) -> None:
        self._times: Integers = np.empty(64, dtype=np.int64)
        self._steps: Integers = np.empty(64, dtype=np.int64)
        self._values: Floats = np.empty(64)
        self._count = 0

    def append(self, time_ms: int, step: int, value: float) -> None:
        count = self._count
        if count == MAX_ROWS:
            half = MAX_ROWS // 2
            for array in (self._times, self._steps, self._values):
                older = array[:half:2].copy()
                array[len(older) : len(older) + half] = array[half:count].copy()
                array[: len(older)] = older
            count = len(older) + half
        elif count == len(self._times):
            size = min(2 * count, MAX_ROWS)
            self._times = np.resize(self._times, size)
            self._steps = np.resize(self._steps, size)
            self._values = np.resize(self._values, size)
        self._times[count], self._steps[count], self._values[count] = time_ms, step, value
        self._count = count + 1

    def ordered(self) -> LoggedColumn:
        count = self._count
        times, steps, values = self._times[:count], self._steps[:count], self._values[:count]
        order = np.argsort(times, kind="stable")
        return LoggedColumn(times[order], steps[order], values[order])
