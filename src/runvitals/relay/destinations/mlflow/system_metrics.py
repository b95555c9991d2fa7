"""Computes MLflow's system metrics.

A number of samples form a window, and a window yields one point per metric.

As in MLflow, means are rounded to one decimal and network totals start at 0 with the monitor. A point has the
time of its window's last sample; in MLflow it is the time of the request, one interval later. The last window
of a run is delivered even if it is not full, so that the shortest run has a point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import isnan
from typing import Any

from runvitals.model.metrics.mlflow import MlflowColumn, columns
from runvitals.relay.batch import Samples, in_order
from runvitals.relay.destinations.mlflow.tracking_store import MetricPoint


class MetricWindow:
    """The open window of one monitor process.

    Args:
        state: the value of `state` saved earlier; None for a new window.
        step: the step of the first point.

    Attributes:
        step: the step of the next point.

    Example:
        >>> window = MetricWindow(None, 0)
        >>> list(window.add(tables, samples=3))
        [MetricPoint(key='cpu_utilization_percentage', value=12.4, time_ms=1700000020000, step=0), …]
        >>> list(window.close())     # what is left at the end
        []
    """

    def __init__(self, state: dict[str, Any] | None, step: int) -> None:
        state = state or {}
        self.step = int(state.get("step", step))
        self._count = int(state.get("count", 0))
        self._time_ms = int(state.get("time_ms", 0))
        self._sums: dict[str, list[float]] = {
            name: list(pair) for name, pair in state.get("sums", {}).items()
        }
        self._totals: dict[str, float] = dict(state.get("totals", {}))
        self._zeros: dict[str, float] = dict(state.get("zeros", {}))

    @property
    def state(self) -> dict[str, Any]:
        """The window as JSON values."""
        return {
            "step": self.step,
            "count": self._count,
            "time_ms": self._time_ms,
            "sums": self._sums,
            "totals": self._totals,
            "zeros": self._zeros,
        }

    def add(
        self, tables: Sequence[Samples], samples: int, amd: Collection[int] = ()
    ) -> Iterator[MetricPoint]:
        """Add samples; returns the points of every window that became full.

        Args:
            samples: how many make a window.
            amd: indices of AMD GPUs.
        """
        plans = {table.keys: columns(table.keys, amd) for table in tables}
        for moment in in_order(tables):
            self._count += 1
            self._time_ms = moment.time_ms
            for column in plans[moment.keys]:
                self._put(column, [moment.values[index] for index in column.positions])
            if self._count >= samples:
                yield from self.close()

    def _put(self, column: MlflowColumn, values: list[float]) -> None:
        values = [value for value in values if not isnan(value)]
        if not values:
            return  # a gap
        value = sum(values) * column.factor
        if column.total:
            self._totals[column.name] = value - self._zeros.setdefault(column.name, value)
            return
        pair = self._sums.setdefault(column.name, [0.0, 0])
        pair[0] += value / len(values) if column.how == "mean" else value
        pair[1] += 1

    def close(self) -> Iterator[MetricPoint]:
        """End the window; returns its points, if it has samples."""
        if not self._count:
            return
        for name, (total, count) in self._sums.items():
            yield MetricPoint(name, round(total / count, 1), self._time_ms, self.step)
        for name, value in self._totals.items():
            yield MetricPoint(name, value, self._time_ms, self.step)
        self.step += 1
        self._count, self._sums, self._totals = 0, {}, {}
