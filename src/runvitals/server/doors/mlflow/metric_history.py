"""The metrics of runs as MLflow's clients read them: logged rows, and system metrics under MLflow's names."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.model.metrics import mlflow as mlflow_names
from runvitals.readers.journals.series import Series
from runvitals.server.doors.mlflow.requests import json_number
from runvitals.server.library.run_library import RunView, SeriesSelection

HOST = "mlflow"
"""The host of runs whose client does not say where it runs."""


class MetricValues(NamedTuple):
    """All values of a metric, in the order of timestamps, then steps."""

    timestamps: Floats
    steps: Floats
    values: Floats

    @classmethod
    def nothing(cls) -> MetricValues:
        """Return no values."""
        return cls(np.empty(0), np.empty(0), np.empty(0))

    @property
    def nbytes(self) -> int:
        """Bytes that the values take."""
        return self.timestamps.nbytes + self.steps.nbytes + self.values.nbytes

    def spaced_indices(self, most: int, start: int | None, end: int | None) -> list[int]:
        """Return the places of at most `most` values, in the order of steps.

        Evenly spaced ones with the first and the last; one of each pair gives way to the lowest and the
        highest value.

        Args:
            start, end: only steps between these, both included.
        """
        order = np.lexsort((self.timestamps, self.steps))
        if start is not None and end is not None:
            steps = self.steps[order]
            order = order[(steps >= start) & (steps <= end)]
        if len(order) <= most:
            return [int(index) for index in order]
        indices = {int(index) for index in np.linspace(0, len(order) - 1, max(1, most - 2)).astype(np.int64)}
        values = self.values[order]
        if most > 2 and not np.isnan(values).all():
            indices |= {int(np.nanargmin(values)), int(np.nanargmax(values))}
        return [int(order[index]) for index in sorted(indices)]


class HistoryPoint(NamedTuple):
    """A value of a metric."""

    key: str
    value: float
    timestamp: int
    step: int

    def as_json(self) -> dict[str, object]:
        """Return the point as MLflow's clients read it."""
        return {
            "key": self.key,
            "value": json_number(self.value),
            "timestamp": self.timestamp,
            "step": self.step,
        }


def history_of(view: RunView, name: str) -> MetricValues:
    """Return the values of one metric of a run."""
    return all_history(view, {name}).get(name, MetricValues.nothing())


def all_history(view: RunView, names: set[str] | None = None) -> dict[str, MetricValues]:
    """Return the values of metrics, by name.

    Args:
        names: only these; None: all.
    """
    by_name: dict[str, list[tuple[Floats, Floats, Floats]]] = {}
    for process in view.logged_columns(names or ()):
        for name, (steps, times, values) in process.columns.items():
            by_name.setdefault(name, []).append((times, steps, values))
    if names is None or any(name.startswith(mlflow_names.PREFIX) for name in names):
        for name, series in _system(view, names):
            times = np.asarray(series.t, np.float64)
            by_name.setdefault(name, []).append(series_columns(times, series))
    return {name: _join(parts) for name, parts in by_name.items()}


def series_columns(times: Floats, series: Series) -> tuple[Floats, Floats, Floats]:
    """Return times, steps and values of a system metric; the steps number its samples."""
    # MLflow's own monitor numbers its samples; ours have no steps.
    return times, np.arange(len(times), dtype=np.float64), np.asarray(series.values, np.float64)


def _system(view: RunView, names: set[str] | None) -> Iterable[tuple[str, Series]]:
    keys: tuple[str, ...] = ()
    if names is not None:
        our_keys = (mlflow_names.from_mlflow(name) for name in names)
        keys = tuple({match.key for match in our_keys if match is not None})
        if not keys:
            return
        keys += (mlflow_names.OF_HOST,)
    series_list = view.samples(SeriesSelection(keys), 0, _END_MS)
    with_host_memory = {series.host for series in series_list if series.key == mlflow_names.OF_HOST}
    several = len({series.host for series in series_list}) > 1
    for series in series_list:
        renamed = mlflow_names.rename(series.key, series.host in with_host_memory)
        if renamed is None:
            continue
        name, factor = renamed
        nodes = [name, f"{mlflow_names.PREFIX}{series.host}/{name.removeprefix(mlflow_names.PREFIX)}"]
        node_name = nodes[1] if several and series.host != HOST else nodes[0]
        if names is not None:
            node_name = next((node for node in nodes if node in names), node_name)
            if node_name not in names:
                continue
        values = np.asarray(series.values, np.float64)
        if factor != 1.0:
            values = np.array([float(f"{value:.12g}") for value in (values * factor).tolist()])
        yield node_name, Series(series.key, series.host, series.role, series.t, values)


_END_MS = 253_402_300_799_999


def _join(parts: list[tuple[Floats, Floats, Floats]]) -> MetricValues:
    times, steps, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if (times[1:] > times[:-1]).all():  # as of a training in one process
        return MetricValues(times, steps, values)
    order = np.lexsort((values, steps, times))
    return MetricValues(times[order], steps[order], values[order])


def latest_point(name: str, history: MetricValues) -> HistoryPoint | None:
    """Return the value of the highest step, then of the latest timestamp, then the highest."""
    if not len(history.values):
        return None
    newest_index = int(np.lexsort((history.values, history.timestamps, history.steps))[-1])
    return _point(name, history, newest_index)


def points_json(name: str, history: MetricValues, indices: Iterable[int]) -> list[dict[str, Any]]:
    """Return the values at some places of a history, as `HistoryPoint.as_json` shows them.

    There may be many.
    """
    positions = np.fromiter(indices, np.int64)
    times, steps = (
        column[positions].astype(np.int64).tolist() for column in (history.timestamps, history.steps)
    )
    return [
        {
            "key": name,
            "value": value if isfinite(value) else json_number(value),
            "timestamp": time,
            "step": step,
        }
        for value, time, step in zip(history.values[positions].tolist(), times, steps, strict=True)
    ]


def _point(name: str, history: MetricValues, index: int) -> HistoryPoint:
    return HistoryPoint(
        name,
        float(history.values[index]),
        int(history.timestamps[index]),
        int(history.steps[index]),
    )


def newer(point: HistoryPoint, before: HistoryPoint | None) -> bool:
    """Return whether a point is shown instead of a known one."""
    if before is None:
        return True
    return (point.step, point.timestamp, point.value) >= (before.step, before.timestamp, before.value)
