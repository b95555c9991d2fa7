"""The plans of stored runs, kept up to date from what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from runvitals.base import deadline
from runvitals.base.buckets import Buckets
from runvitals.server.charts.run_plan import (
    NO_VALUES,
    PlannedSeries,
    RunPlan,
    ValueRange,
    is_gauge,
    planned_series,
)
from runvitals.server.library.stored.lanes import Lane

_MAX_KEPT_SERIES = 300_000
"""Series of all plans that are kept: about 60 MB."""

ReadRanges = Callable[[Lane, Sequence[int], int], Mapping[int, Buckets]]
"""(lane, metrics, from ms) → the values from this time on, by metric, in wide buckets."""


class StoredPlan:
    """The plan of one run. Thread-safe: a run has several views.

    A counter is read again only while all its values are equal: whether it is 0 all the time cannot change
    after that. Samples that are older than others of the same lane and arrive after them are not considered,
    so a chart may be among those that are all zero until the server starts again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranges: dict[tuple[int, int], ValueRange] = {}
        self._upto: dict[int, int] = {}
        self._keys: dict[int, Mapping[str, int]] = {}
        self.plan = RunPlan(())

    def update(self, lanes: Sequence[Lane], last_times: Mapping[int, int], read: ReadRanges) -> RunPlan:
        """Return the plan of these lanes; the same object as before if nothing in it has changed.

        Args:
            last_times: of the lanes that have samples.
        """
        with self._lock:
            series: list[PlannedSeries] = []
            for lane in lanes:
                if lane.sampled:
                    self._read_new(lane, last_times.get(lane.id, -1), read)
                    ranges = {
                        key: self._ranges.get((lane.id, metric), NO_VALUES)
                        for key, metric in lane.sampled.items()
                    }
                    series += planned_series(lane.host, lane.role, ranges)
            if tuple(series) != self.plan.series:
                self.plan = RunPlan(series)
            return self.plan

    def _read_new(self, lane: Lane, newest_ms: int, read: ReadRanges) -> None:
        upto = self._upto.get(lane.id, -1)
        if newest_ms <= upto and self._keys.get(lane.id) is lane.sampled:
            return
        constant, new = [], []
        for key, metric in lane.sampled.items():
            deadline.check()
            before = self._ranges.get((lane.id, metric))
            if before is None:
                if not is_gauge(key):
                    new.append(metric)
            elif before.n < 2 or before.is_constant:
                constant.append(metric)
        for metrics, from_ms in ((new, 0), (constant, upto + 1)):
            values = read(lane, metrics, from_ms) if metrics and newest_ms >= from_ms else {}
            for metric in metrics:
                before = self._ranges.get((lane.id, metric), NO_VALUES)
                self._ranges[lane.id, metric] = _add_buckets(before, values.get(metric))
        self._upto[lane.id] = max(upto, newest_ms)
        self._keys[lane.id] = lane.sampled


def _add_buckets(before: ValueRange, buckets: Buckets | None) -> ValueRange:
    if buckets is None:
        return before
    for n, low, high in zip(buckets.n.tolist(), buckets.min.tolist(), buckets.max.tolist(), strict=True):
        if n:
            before = before.with_values(n, low, high)
    return before


class StoredPlans:
    """The plans of the runs that were used last, by the run's number in the metadata store."""

    def __init__(self, max_series: int = _MAX_KEPT_SERIES) -> None:
        self._max_series = max_series
        self._lock = threading.Lock()
        self._plans: dict[int, StoredPlan] = {}

    def of(self, number: int) -> StoredPlan:
        """Return the plan of a run, which `update` computes at its first use."""
        with self._lock:
            plan = self._plans.pop(number, None) or StoredPlan()
            series_count = sum(len(kept_plan.plan.series) for kept_plan in self._plans.values())
            for kept_number in list(self._plans):
                if series_count <= self._max_series:
                    break
                series_count -= len(self._plans.pop(kept_number).plan.series)
            self._plans[number] = plan
            return plan
