"""The plan of a run's charts: its series and their definitions, without their values.

The list of all series with their extents (`/series`) of a run of 32 GPUs is 675 kB and reads every sample of
every counter. A plan has each definition once, and is kept until a series is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from runvitals.base import deadline
from runvitals.model.metrics import DEFINITIONS, mlflow
from runvitals.readers.journals.rates import rate_of
from runvitals.server.charts.series_definitions import definition, mlflow_name

MAX_SERIES = 10_000
"""Series in one response."""


class PlannedSeries(NamedTuple):
    """A series of a plan.

    Args:
        zero: all values so far of this counter or rate are 0. False for gauges, of which it is not looked up.
    """

    key: str
    host: str
    role: str
    zero: bool


class ValueRange(NamedTuple):
    """The lowest and highest of `n` values; NaN if there are none."""

    n: int
    low: float
    high: float

    @property
    def is_constant(self) -> bool:
        """Whether all values are equal."""
        return self.low == self.high

    def with_values(self, n: int, low: float, high: float) -> ValueRange:
        """Return the range of these values and of `n` others."""
        if not self.n:
            return ValueRange(n, low, high)
        return ValueRange(self.n + n, min(self.low, low), max(self.high, high)) if n else self


NO_VALUES = ValueRange(0, float("nan"), float("nan"))


class RunPlan:
    """The series of a run, rates included. It does not change, so that its first page is computed once."""

    def __init__(self, series: Iterable[PlannedSeries]) -> None:
        self.series = tuple(series)

    @cached_property
    def first_page(self) -> dict[str, Any]:
        """The first `MAX_SERIES` series, as `page` returns them."""
        return self._page(self.series[:MAX_SERIES], len(self.series), 0)

    def page(self, matches: Callable[[str], bool] | None, skip: int = 0) -> dict[str, Any]:
        """Return fields of `plan_models.RunPlanSchema` for matching keys (None: all), after `skip` series."""
        if matches is None and not skip:
            return self.first_page
        series = [planned for planned in self.series if matches is None or matches(planned.key)]
        return self._page(series[skip : skip + MAX_SERIES], len(series), skip)

    def _page(self, series: Iterable[PlannedSeries], total: int, skip: int) -> dict[str, Any]:
        positions: dict[tuple[str, str], int] = {}
        metrics: dict[str, dict[str, Any]] = {}
        entries: dict[tuple[str, str | None], dict[str, Any]] = {}
        for key, host, role, zero in series:
            deadline.check()
            position = positions.setdefault((host, role), len(positions))
            mlflow_fields = mlflow_name(key, host in self._with_host_memory)
            name = None if mlflow_fields is None else mlflow_fields["name"]
            entry = entries.get((key, name))
            if entry is None:
                entry = entries[key, name] = {"key": key, "mlflow": name, "places": [], "zero": []}
                about = definition(key)
                metric = metrics.setdefault(about["template"], {**about, "mlflow": None, "series": []})
                if mlflow_fields is not None:
                    metric["mlflow"] = {"unit": mlflow_fields["unit"], "factor": mlflow_fields["factor"]}
                metric["series"].append(entry)
            entry["places"].append(position)
            if zero:
                entry["zero"].append(position)
        return {
            "total": total,
            "next": skip + MAX_SERIES if total > skip + MAX_SERIES else None,
            "places": [{"host": host, "role": role} for host, role in positions],
            "metrics": list(metrics.values()),
        }

    @cached_property
    def _with_host_memory(self) -> frozenset[str]:
        return frozenset(planned.host for planned in self.series if planned.key == mlflow.OF_HOST)


def planned_series(host: str, role: str, ranges: Mapping[str, ValueRange]) -> Iterator[PlannedSeries]:
    """Yield the series of one host and the rates of its counters, by key.

    Args:
        ranges: by key; those of gauges are not used.
    """
    for key in sorted(ranges):
        value_range = ranges[key]
        yield PlannedSeries(
            key, host, role, not is_gauge(key) and value_range.is_constant and value_range.low == 0
        )
        rate = rate_of(key)
        if rate is not None and value_range.n > 1:
            yield PlannedSeries(rate.key, host, role, value_range.is_constant)


def is_gauge(key: str) -> bool:
    """Return whether the values of a key are measured now, and do not only grow."""
    match = DEFINITIONS.find(key)
    return match is not None and match.metric.kind == "gauge"
