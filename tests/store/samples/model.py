"""A sample store that is simple enough to be obviously correct: dictionaries, no files, no threads."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from runvitals.base.buckets import Grid, reduce
from runvitals.store.samples.interface import (
    Capabilities,
    CommitAck,
    LatestSample,
    MetricAggregate,
    ReadResult,
    SampleBatch,
    SeriesBuckets,
    SeriesSamples,
    StoreClosed,
    StoreStats,
)

Series = dict[int, float]


class Model:
    """Run → metric → time → value."""

    capabilities = Capabilities(durable_ack=False, exact_float64=True, read_after_write_ms=0)

    def __init__(self) -> None:
        self.runs: dict[int, dict[int, Series]] = {}
        self.stored: set[tuple[int, int, int]] = set()
        self.closed = False

    def append(self, batches: Sequence[SampleBatch]) -> CommitAck:
        if self.closed:
            raise StoreClosed("closed")
        for batch in batches:
            batch.check()
            batch.check_metrics()
        fresh = tuple(self._store(batch) for batch in batches)
        return CommitAck(sum(fresh), len(fresh) - sum(fresh), fresh)

    def _store(self, batch: SampleBatch) -> bool:
        identity = (batch.run, batch.writer, batch.seq)
        if identity in self.stored:
            return False
        self.stored.add(identity)
        for row, t in enumerate(batch.t.tolist()):
            for column, metric in enumerate(batch.metrics):
                # Not float(), which would lose the payload of a NaN.
                self.runs.setdefault(batch.run, {}).setdefault(metric, {})[t] = batch.values[row, column]
        return True

    def stored_batches(self, run: int) -> dict[int, list[tuple[int, int]]]:
        stored: dict[int, list[tuple[int, int]]] = {}
        for _, writer, seq in sorted(identity for identity in self.stored if identity[0] == run):
            ranges = stored.setdefault(writer, [])
            if ranges and ranges[-1][1] + 1 == seq:
                ranges[-1] = (ranges[-1][0], seq)
            else:
                ranges.append((seq, seq))
        return stored

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        future: Future[CommitAck] = Future()
        try:
            future.set_result(self.append(batches))
        except (ValueError, StoreClosed) as error:
            future.set_exception(error)
        return future

    def _series(
        self, runs: Sequence[int], metrics: Collection[int] | None
    ) -> Iterator[tuple[int, int, Series]]:
        for run in runs:
            for metric, series in sorted(self.runs.get(run, {}).items()):
                if metrics is None or metric in metrics:
                    yield run, metric, series

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        results = []
        for run, metric, series in self._series(runs, metrics):
            times = sorted(t for t in series if t0_ms <= t <= t1_ms)
            if times:
                values = np.array([series[t] for t in times], np.float64)
                results.append(SeriesSamples(run, metric, np.array(times, np.int64), values))
        return ReadResult(results, [])

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        samples = self.read(runs, metrics, on.t0_ms, on.t0_ms + on.count * on.width_ms - 1).series
        return ReadResult([SeriesBuckets(s.run, s.metric, reduce(on, s.t, s.values)) for s in samples], [])

    def active_runs(self, since_ms: int) -> list[int]:
        return sorted(
            run
            for run, metrics in self.runs.items()
            if any(t >= since_ms for series in metrics.values() for t in series)
        )

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        return {
            run: max(t for series in self.runs[run].values() for t in series)
            for run in runs
            if run in self.runs
        }

    def sizes(self, runs: Sequence[int]) -> dict[int, int]:
        return {
            run: 16 * sum(len(series) for series in self.runs[run].values())
            for run in runs
            if run in self.runs
        }

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        results = []
        for run in runs:
            newest = []
            for _, metric, series in self._series([run], metrics):
                times = [t for t, value in series.items() if not math.isnan(value)]
                if times:
                    newest.append((metric, max(times), series[max(times)]))
            if newest:
                ids, t, values = zip(*newest, strict=True)
                results.append(LatestSample(run, np.array(ids), np.array(t), np.array(values)))
        return results

    def aggregate(
        self,
        metric: int,
        runs: Sequence[int],
        t0_ms: int,
        t1_ms: int,
        bucket_ms: int | None = None,
        group_by: Mapping[int, int] | None = None,
    ) -> ReadResult[MetricAggregate]:
        groups: dict[int, dict[int, list[float]]] = {}
        for run, _, series in self._series(runs, [metric]):
            for t, value in series.items():
                if t0_ms <= t <= t1_ms and not math.isnan(value):
                    start = t0_ms if bucket_ms is None else t // bucket_ms * bucket_ms
                    group = groups.setdefault(0 if group_by is None else group_by[run], {})
                    group.setdefault(start, []).append(float(value))
        return ReadResult([_aggregate(group, buckets) for group, buckets in sorted(groups.items())], [])

    def delete(self, runs: Sequence[int]) -> None:
        for run in runs:
            self.runs.pop(run, None)
        self.stored = {identity for identity in self.stored if identity[0] not in runs}

    def drop_before(self, t_ms: int) -> None:
        for run, metrics in list(self.runs.items()):
            for metric, series in list(metrics.items()):
                metrics[metric] = {t: value for t, value in series.items() if t >= t_ms}
                if not metrics[metric]:
                    del metrics[metric]
            if not metrics:
                del self.runs[run]

    def shrink_to(self, size_bytes: int) -> None:
        times = sorted(t for metrics in self.runs.values() for series in metrics.values() for t in series)
        excess = max(len(times) - size_bytes // 16, 0)
        if excess:
            self.drop_before(times[excess - 1] + 1)

    def flush(self) -> None:
        pass

    def stats(self) -> StoreStats:
        samples = sum(len(series) for metrics in self.runs.values() for series in metrics.values())
        return StoreStats(len(self.runs), samples, 0, 0, samples * 16, None)

    def close(self) -> None:
        self.closed = True


def _aggregate(group: int, buckets: dict[int, list[float]]) -> MetricAggregate:
    starts = sorted(buckets)
    values_by_bucket = [buckets[start] for start in starts]
    return MetricAggregate(
        group,
        np.array(starts, np.int64),
        np.array([len(values) for values in values_by_bucket], np.int64),
        np.array([min(values) for values in values_by_bucket]),
        np.array([max(values) for values in values_by_bucket]),
        np.array(
            [
                math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values)
                for values in values_by_bucket
            ]
        ),
    )
