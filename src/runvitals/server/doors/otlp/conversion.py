"""Converts the points of a request to samples and logged rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, isnan

import numpy as np

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.model.names import sanitized_name
from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.otlp.distributions import PERCENTILES, difference, quantile
from runvitals.server.doors.otlp.message import (
    HISTOGRAM,
    SUMMARY,
    HistogramPoint,
    NumberPoint,
    Resource,
    SentMetric,
    SummaryPoint,
)
from runvitals.server.doors.otlp.series import (
    LOG,
    LOG_STEP,
    ComputedValues,
    DeltaTotal,
    HistogramSeries,
    HistogramState,
    NumberSeries,
    RememberedRun,
    ResourceSeries,
    TooManyKeys,
)
from runvitals.server.doors.recording import samples
from runvitals.server.doors.routing import Route, writer_host
from runvitals.server.doors.sample_batches import batches
from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.envelope import Envelope, WriterDescription

_NS_PER_MS = 1_000_000
_NAN = float("nan")
_MAX_REASONS = 10
_MAX_UNSENT = 1000


@dataclass(slots=True)
class _Points:
    """The points of one writer: of samples by key, of logged rows by time."""

    run: RememberedRun
    route: Route
    has_logs: bool
    pid: int | None = None
    samples: dict[str, dict[int, float]] = field(default_factory=dict)
    rows: dict[int, dict[str, float]] = field(default_factory=dict)
    steps: dict[int, float] = field(default_factory=dict)


class Conversion:
    """Converts the points of one request. `commit` it when they are stored.

    Args:
        now_ms: by the server's clock.

    Attributes:
        rejected: number of points that are not stored.
        reasons: why, with the number of points.
    """

    def __init__(self, now_ms: int, limits: Limits) -> None:
        self._oldest_ns = limits.oldest_ms * _NS_PER_MS
        self._newest_ns = (now_ms + limits.ahead_ms) * _NS_PER_MS
        self.reasons: Counter[str] = Counter()
        self._points: dict[tuple[int, str, bool, int | None, int | None], _Points] = {}
        self._derived: dict[int, tuple[DerivedMetric, _Points]] = {}
        self._counted: dict[int, tuple[NumberSeries, int]] = {}
        self._totals: dict[int, tuple[DeltaTotal, float]] = {}
        self._states: dict[int, tuple[HistogramSeries, HistogramState]] = {}

    @property
    def rejected(self) -> int:
        """The number of data points that were rejected."""
        return sum(self.reasons.values())

    @property
    def reason(self) -> str:
        """Why points were rejected, for the sender's log."""
        counts = self.reasons.most_common(_MAX_REASONS)
        return "; ".join(f"{count} points: {reason}" for reason, count in counts)

    def reject(self, reason: str, count: int = 1) -> None:
        """Count points that are not stored."""
        if reason in self.reasons or len(self.reasons) < 100:
            self.reasons[reason] += count
        else:
            self.reasons["for other reasons"] += count

    def add(self, resource: Resource, series: ResourceSeries, run: RememberedRun) -> None:
        """Add the points of a resource."""
        pid = resource.attributes.get("process.pid", "")
        number = int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else None
        route = series.route
        into = self._of_writer(run, route, None)
        for metric in resource.metrics:
            count = len(metric.numbers) + len(metric.histograms) + len(metric.summaries)
            for fault, points in metric.faults.items():
                self.reject(fault, points)
            if len(metric.name) > NAME_CHARACTERS:
                metric.name = sanitized_name(metric.name)  # once, and not in the key of each series
            if not metric.name:
                self.reject("a metric without a name", count)
            elif metric.name in (LOG, LOG_STEP):
                self._add_logged(metric, resource, series, self._of_writer(run, route, number, logs=True))
            elif metric.kind == HISTOGRAM:
                for histogram in metric.histograms:
                    self._add_histogram(metric, resource, series, histogram, into)
            elif metric.kind == SUMMARY:
                for summary in metric.summaries:
                    self._add_summary(metric, resource, series, summary, into)
            else:
                self._add_numbers(metric, resource, series, into)

    def commit(self) -> None:
        """Remember the totals: the points are stored."""
        for series, last_ns in self._counted.values():
            series.last_ns = last_ns
        for total, value in self._totals.values():
            total.value = value
        for histogram, state in self._states.values():
            histogram.state = state
        for points in self._points.values():
            points.run.unsent.clear()
            points.run.unsent_names.clear()

    def envelopes(self) -> Iterator[Envelope]:
        """Yield the envelopes to store."""
        for derived, into in self._derived.values():
            unsent, host = into.run.unsent, into.route.host
            unsent += [ComputedValues(host, moment.t, moment.outputs) for moment in derived.pop_completed()]
            del unsent[:-_MAX_UNSENT]
        for points in self._points.values():
            if not points.has_logs:
                self._add_computed(points)
        for points in self._points.values():
            if points.samples:
                yield from _sample_envelopes(points)
            if points.rows:
                yield from self._row_envelopes(points)

    def _add_computed(self, points: _Points) -> None:
        for computed in points.run.unsent:
            if computed.host != points.route.host:
                continue
            for key, value in computed.values.items():
                try:
                    of_key = points.samples.setdefault(points.run.add(key), {})
                except TooManyKeys:
                    break
                of_key.setdefault(computed.time_ms, value)

    def _of_writer(self, run: RememberedRun, route: Route, pid: int | None, logs: bool = False) -> _Points:
        rank = route.rank if logs else None
        key = id(run), route.host, logs, rank, pid
        points = self._points.get(key)
        if points is None:
            points = self._points[key] = _Points(run, route, logs, pid)
        return points

    def _add_numbers(
        self, metric: SentMetric, resource: Resource, series: ResourceSeries, into: _Points
    ) -> None:
        numbers, collected = series.numbers(metric), into.samples
        oldest, newest, is_delta = self._oldest_ns, self._newest_ns, metric.is_delta
        usual_ns: int | None = None  # nearly all points of a metric have the same time
        time_ms = 0
        for point in metric.numbers:
            encoded, _, time_ns, value = point
            number_series = numbers.get(encoded)
            if number_series is None:
                try:
                    number_series = series.new_number(metric, resource, encoded)
                except ValueError as error:
                    self._reject_attributes(error)
                    continue
            if time_ns != usual_ns:
                if not oldest <= time_ns <= newest:
                    self._reject_time(time_ns)
                    continue
                usual_ns, time_ms = time_ns, time_ns // _NS_PER_MS
            if is_delta:
                total = self._total(number_series, point)
                if total is None:
                    continue
                value = total
            least, most = number_series.possible
            if not least <= value <= most and not isnan(value):
                self.reject("with a value that stands for none")
                continue
            if value > number_series.highest:
                value = number_series.highest
            if number_series.inputs and not isnan(value):
                for input_ in number_series.inputs:
                    derived = into.run.add_input(into.route.host, input_, time_ms, value)
                    self._derived[id(derived)] = derived, into
            key = number_series.key
            if key is None:
                continue
            of_key = collected.get(key)
            if of_key is None:
                collected[key] = {time_ms: value * number_series.factor}
            else:
                of_key[time_ms] = value * number_series.factor

    def _total(self, series: NumberSeries, point: NumberPoint) -> float | None:
        """Return the total after a difference; None for one that was counted before, and for a gap."""
        _, last_ns = self._counted.get(id(series), (series, series.last_ns))
        _, _, time_ns, value = point
        if time_ns <= last_ns or isnan(value):
            return None
        self._counted[id(series)] = series, time_ns
        assert series.total is not None
        return self._accumulate(series.total, value)

    def _accumulate(self, total: DeltaTotal, value: float) -> float:
        """Return a total with a difference more."""
        _, before = self._totals.get(id(total), (total, total.value))
        self._totals[id(total)] = total, before + value
        return before + value

    def _add_histogram(
        self,
        metric: SentMetric,
        resource: Resource,
        series: ResourceSeries,
        point: HistogramPoint,
        into: _Points,
    ) -> None:
        if point.fault:
            self.reject(point.fault)
            return
        histogram_series = self._histogram_series(metric, resource, series, point)
        if histogram_series is None:
            return
        _, before = self._states.get(id(histogram_series), (histogram_series, histogram_series.state))
        if point.time_ns <= before.last_ns:
            return  # the point was sent before
        if point.count is None:
            self._set(series, histogram_series, point, dict.fromkeys(("count", "sum"), _NAN), into)
            return
        if histogram_series.totals is not None:
            count, total, buckets = point.count, point.sum or 0.0, point.buckets
            counted, summed = histogram_series.totals
            all_counted, all_summed = self._accumulate(counted, count), self._accumulate(summed, total)
            after = HistogramState(0, point.time_ns, int(all_counted), all_summed)
        else:
            count, total, buckets = _since(before, point)
            after = HistogramState(
                point.start_ns, point.time_ns, point.count, point.sum or 0.0, point.buckets
            )
        self._states[id(histogram_series)] = histogram_series, after
        values = {"count": float(after.count)}
        if point.sum is not None:
            values["sum"] = after.sum
            if count:
                values["mean"] = total / count
        for name, share in PERCENTILES.items():
            estimate = quantile(buckets, share, point.min, point.max)
            if estimate is not None:
                values[name] = estimate
        values |= {
            name: value for name, value in (("min", point.min), ("max", point.max)) if value is not None
        }
        self._set(series, histogram_series, point, values, into)
        self._add_buckets(series, histogram_series, point, into)

    def _add_buckets(
        self, series: ResourceSeries, histogram: HistogramSeries, point: HistogramPoint, into: _Points
    ) -> None:
        """Add how many values were at most each bound, as Prometheus has it."""
        try:
            keys = series.bucket_keys(histogram, point.bounds)
        except TooManyKeys as error:
            self.reject(str(error))
            return
        counts = iter(sorted((high, count) for (_, high), count in point.buckets.items()))
        below, following = 0, next(counts, None)
        for bound, key in keys.items():  # ascending
            while following is not None and following[0] <= bound:
                below += following[1]
                following = next(counts, None)
            at_most = float(point.count or 0) if bound == inf else float(below)
            if histogram.totals is not None:
                at_most = self._accumulate(series.total(key), at_most)
            into.samples.setdefault(key, {})[point.time_ns // _NS_PER_MS] = at_most

    def _add_summary(
        self,
        metric: SentMetric,
        resource: Resource,
        series: ResourceSeries,
        point: SummaryPoint,
        into: _Points,
    ) -> None:
        histogram_series = self._histogram_series(metric, resource, series, point)
        if histogram_series is None:
            return
        if point.count is None:
            self._set(series, histogram_series, point, dict.fromkeys(("count", "sum"), _NAN), into)
            return
        quantiles = {f"p{share * 100:g}": value for share, value in point.quantiles.items() if 0 < share < 1}
        self._set(
            series,
            histogram_series,
            point,
            {"count": float(point.count), "sum": point.sum, **quantiles},
            into,
        )

    def _histogram_series(
        self,
        metric: SentMetric,
        resource: Resource,
        series: ResourceSeries,
        point: HistogramPoint | SummaryPoint,
    ) -> HistogramSeries | None:
        """Return the series of a point; None if the point is rejected."""
        if not self._oldest_ns <= point.time_ns <= self._newest_ns:
            self._reject_time(point.time_ns)
            return None
        histogram_series = series.histograms(metric).get(point.attributes)
        if histogram_series is not None:
            return histogram_series
        try:
            return series.new_histogram(metric, resource, point.attributes)
        except ValueError as error:
            self._reject_attributes(error)
            return None

    def _set(
        self,
        series: ResourceSeries,
        histogram: HistogramSeries,
        point: HistogramPoint | SummaryPoint,
        values: dict[str, float],
        into: _Points,
    ) -> None:
        time_ms = point.time_ns // _NS_PER_MS
        try:
            for part, value in values.items():
                into.samples.setdefault(series.key_of(histogram, part), {})[time_ms] = value
        except TooManyKeys as error:
            self.reject(str(error))

    def _add_logged(
        self, metric: SentMetric, resource: Resource, series: ResourceSeries, into: _Points
    ) -> None:
        numbers = series.numbers(metric)
        for encoded, _, time_ns, value in metric.numbers:
            if not self._oldest_ns <= time_ns <= self._newest_ns:
                self._reject_time(time_ns)
                continue
            try:
                number_series = numbers.get(encoded) or series.new_number(metric, resource, encoded)
            except ValueError as error:
                self._reject_attributes(error)
                continue
            time_ms = time_ns // _NS_PER_MS
            if metric.name == LOG_STEP:
                into.steps[time_ms] = value
            else:
                into.rows.setdefault(time_ms, {})[number_series.key or metric.name] = value

    def _row_envelopes(self, points: _Points) -> Iterator[Envelope]:
        """Yield the rows that our own destination sends: those with the same names share an envelope."""
        by_names: dict[tuple[str, ...], list[int]] = {}
        for time_ms, row in points.rows.items():
            if time_ms in points.steps:
                by_names.setdefault(tuple(sorted(row)), []).append(time_ms)
            else:
                self.reject(f"{LOG} without {LOG_STEP} at the same time", len(row))
        route = points.route
        host = points.run.host(route.host)
        writer = f"train.{writer_host(route.host)}.{points.pid or 0}.{route.rank or 0:x}"
        about = WriterDescription(
            "train", route.host, pid=points.pid, rank=route.rank, interval_s=host.about.interval_s
        )
        for names, times in by_names.items():
            times.sort()
            values = np.array([[points.rows[time][name] for name in names] for time in times], np.float64)
            steps = [points.steps[time] for time in times]
            yield samples(
                route.run,
                writer,
                names,
                times,
                values,
                project=route.project,
                entity=route.entity,
                about=about,
                steps=steps,
            )

    def _reject_time(self, time_ns: int) -> None:
        what = "without a time" if time_ns == 0 else "with a time before 2000, or over a day ahead"
        self.reject(what)

    def _reject_attributes(self, error: ValueError) -> None:
        self.reject(str(error) if isinstance(error, TooManyKeys) else f"invalid attributes: {error}")


def _since(
    before: HistogramState, point: HistogramPoint
) -> tuple[int, float, dict[tuple[float, float], int]]:
    """Count, sum and buckets of a point with totals since the previous one."""
    assert point.count is not None
    grown = None
    if point.start_ns == before.start_ns and point.count >= before.count:
        grown = difference(point.buckets, before.buckets)
    if grown is None:
        return point.count, point.sum or 0.0, dict(point.buckets)
    return point.count - before.count, (point.sum or 0.0) - before.sum, dict(grown)


def _sample_envelopes(points: _Points) -> Iterator[Envelope]:
    """Yield the samples of a host, all in one writer of the role monitor."""
    route = points.route
    host = points.run.host(route.host)
    newest = 0
    writer = f"monitor.{writer_host(route.host)}.otlp"
    for keys, times, values in batches(points.samples, host.lists):
        newest = max(newest, times[-1])
        yield samples(
            route.run,
            writer,
            keys,
            times,
            values,
            project=route.project,
            entity=route.entity,
            about=host.about,
        )
    host.add_time(newest)
