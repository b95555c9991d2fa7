"""The interface of sample stores, independent of their engine.

A **series** is (run, metric): two integer ids assigned by the metadata store. The sample store knows no
names, hosts or teams. If several hosts of a run record the same key, the metadata store assigns each host an
id of its own, and `aggregate` combines them with `group_by`.

The rules, tested by `tests/store/samples/conformance.py` for every store:

* A batch is stored completely or not at all, and is durable when `append` returns.
* (run, writer, seq) identifies a batch: a repeated batch is acknowledged but not stored again, in any order
  of arrival.
* The last write wins on (run, metric, t). Batches may arrive in any order.
* Values are returned bit for bit as they were written: -0.0, ±inf, subnormals, NaN payloads. NaN is a gap: a
  sample when samples are read, but not counted in buckets and aggregates.
* Reads in the same process see appended batches immediately.
* Times are milliseconds UTC, from 1970 to the year 9999. Ranges include both ends.

Example:
    >>> with open_store("/var/lib/runvitals/store") as store:
    ...     t = np.array([1_760_000_000_000, 1_760_000_001_000])
    ...     store.append([SampleBatch(run=7, writer=1, seq=1, metrics=(3, 5), t=t, values=np.ones((2, 2)))])
    ...     store.read_buckets([7], [3, 5], grid(t[0], t[1], max_points=1000)).series[0].buckets.mean
    array([1., 1.])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from runvitals.base.buckets import Buckets, Floats, Grid, Integers
from runvitals.store.errors import StoreError as StoreError

END_OF_TIME_MS = 253_402_300_800_000
"""The year 10,000: times of batches must be earlier."""
_MAX_ID = 2**63 - 1
_FEW_ROWS = 64
_MAX_METRIC = 2**32 - 1


class StoreUnavailable(StoreError):
    """The store cannot write at present (disk full, read-only, failing): nothing was stored, retry later."""


class StoreClosed(StoreError):
    """The store has been closed."""


def extent(t: Integers) -> tuple[int, int]:
    """Return the smallest and largest of one or more times."""
    if len(t) <= _FEW_ROWS:  # for few rows, three times as fast as numpy
        listed = t.tolist()
        return min(listed), max(listed)
    return int(t.min()), int(t.max())


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Samples of one writer: columns of metrics with a common time column.

    Args:
        run, writer: ids, 0 to 2⁶³ - 1.
        seq: the writer's number of this batch, from 0; the same number means the same batch.
        metrics: ids of the columns, 0 to 2³² - 1, each once.
        t: ms UTC of the rows, in any order; if times are equal, the later row wins.
        values: rows × metrics; NaN is a gap.
        body: t and values encoded by `batch_body.pack`, if the sender sent them so; a store may keep them in
            this form.
    """

    run: int
    writer: int
    seq: int
    metrics: tuple[int, ...]
    t: Integers
    values: Floats
    body: bytes | None = field(default=None, repr=False)

    def check(self) -> None:
        """Check that the batch can be stored.

        Raises:
            ValueError: names the batch, what is wrong, and what is allowed.
        """
        t, values = self.t, self.values
        for name, number in (("run", self.run), ("writer", self.writer), ("seq", self.seq)):
            if not 0 <= number <= _MAX_ID:
                raise self._error(f"{name} must be 0 to {_MAX_ID}")
        if t.dtype != np.int64 or values.dtype != np.float64:
            raise self._error(f"t must be int64 and values float64, not {t.dtype} and {values.dtype}")
        if t.ndim != 1 or values.shape != (len(t), len(self.metrics)):
            raise self._error(
                f"values must be {len(t)} rows × {len(self.metrics)} metrics, not {values.shape}"
            )
        if not len(t):
            return
        first, last = extent(t)
        if first < 0 or last >= END_OF_TIME_MS:
            raise self._error(f"times must be 0 to {END_OF_TIME_MS - 1} ms, not {first} to {last}")

    def check_metrics(self) -> None:
        """Raise ValueError for a double metric or an invalid id; called once for batches of equal columns."""
        if len(set(self.metrics)) != len(self.metrics):
            raise self._error("a metric occurs more than once")
        if self.metrics and not (min(self.metrics) >= 0 and max(self.metrics) <= _MAX_METRIC):
            raise self._error(f"metrics must be 0 to {_MAX_METRIC}")

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"batch {self.seq} of writer {self.writer} in run {self.run}: {problem}")


@dataclass(frozen=True, slots=True)
class CommitAck:
    """The batches are durable: `stored` now, `duplicates` before.

    Args:
        fresh: for each batch, in order, whether it was stored now.
    """

    stored: int
    duplicates: int
    fresh: tuple[bool, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SeriesSamples:
    """A series as written: `t` in ms UTC, ascending and unique, and as many `values` (NaN: a gap)."""

    run: int
    metric: int
    t: Integers
    values: Floats


@dataclass(frozen=True, slots=True)
class SeriesBuckets:
    """A series on a bucket grid."""

    run: int
    metric: int
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class LatestSample:
    """The newest values of a run's metrics: ascending ids, ms UTC, values (never NaN)."""

    run: int
    metrics: Integers
    t: Integers
    values: Floats


@dataclass(frozen=True, slots=True)
class MetricAggregate:
    """One metric over the runs of a group: the buckets that contain a value.

    Args:
        t: the start of the buckets, ms UTC.
        n: values in the bucket, over all runs of the group.
        min, max, mean: of those values.
    """

    group: int
    t: Integers
    n: Integers
    min: Floats
    max: Floats
    mean: Floats


@dataclass(frozen=True, slots=True)
class DamagedData:
    """A range of stored samples that cannot be read; all others are served.

    Args:
        run, metric: ids; None for all.
        t0_ms, t1_ms: both included.
        reason: which file, and what is wrong with it.
    """

    run: int | None
    metric: int | None
    t0_ms: int
    t1_ms: int
    reason: str


S = TypeVar("S", SeriesSamples, SeriesBuckets, MetricAggregate)


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[S]):
    """The samples read, and those that are damaged."""

    series: list[S]
    damaged: list[DamagedData]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The rules that a store guarantees.

    Args:
        durable_ack: an acknowledged batch survives a power failure.
        exact_float64: values are returned bit for bit.
        read_after_write_ms: how long until reads in the same process see a batch.
        atomic_batches: a batch is stored completely or not at all, also if it was never acknowledged.
    """

    durable_ack: bool
    exact_float64: bool
    read_after_write_ms: int
    atomic_batches: bool = True


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Statistics and problems of a store.

    Args:
        runs, samples: in their final form (a value of one metric at one time is one sample).
        unsealed_samples: durable, but not yet in their final form. Samples that are sealed while
            they are counted may be in both numbers, never in neither.
        waiting_batches: submitted, but not yet durable.
        size_bytes: everything included, also what is in cold storage.
        problem: why background work is failing; None if it is not.
        warnings: other conditions that need attention; samples are still accepted and served.
        threads: the background threads by name, and why each is failing.
        cold_bytes: in cold storage, and not on disk.
    """

    runs: int
    samples: int
    unsealed_samples: int
    waiting_batches: int
    size_bytes: int
    problem: str | None
    warnings: tuple[str, ...] = ()
    threads: Mapping[str, str | None] = field(default_factory=dict)
    cold_bytes: int = 0


@runtime_checkable
class SampleStore(Protocol):
    """A sample store. All methods are thread-safe."""

    @property
    def capabilities(self) -> Capabilities:
        """The rules that this store guarantees."""

    def append(self, batches: Sequence[SampleBatch]) -> CommitAck:
        """Store batches. When this returns they are durable and visible to all readers.

        Raises:
            ValueError: an invalid batch (`SampleBatch.check`); then none is stored.
            StoreUnavailable: not stored; try again later.
        """

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        """Like `append`, without waiting: the future gets the result or the error."""

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        """Return the samples of series as they were written, by run in the order given, then by metric.

        Args:
            metrics: None: all metrics of the runs.
            t0_ms, t1_ms: both included.
        """

    def read_buckets(
        self, runs: Sequence[int], metrics: Sequence[int] | None, on: Grid
    ) -> ReadResult[SeriesBuckets]:
        """Read the series on a bucket grid.

        `runvitals.base.buckets.grid` computes one for a range and a number of points.
        """

    def active_runs(self, since_ms: int) -> list[int]:
        """Return the ids, ascending, of the runs with a sample at or after this time."""

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        """Return the newest values of runs, of these metrics or all, in the order given.

        Runs without values are left out.
        """

    def stored_batches(self, run: int) -> Mapping[int, Sequence[tuple[int, int]]]:
        """Return the batches of a run that were stored: ranges of their numbers, by writer, ascending."""

    def last_times(self, runs: Sequence[int]) -> dict[int, int]:
        """Return the time of the last sample of each of these runs that has any, ms UTC; gaps count."""

    def sizes(self, runs: Sequence[int]) -> dict[int, int]:
        """Return how many bytes the samples of each of these runs take.

        Runs without samples are left out. This may take seconds for thousands of runs.

        Raises:
            StoreError: a file cannot be read.
        """

    def aggregate(
        self,
        metric: int,
        runs: Sequence[int],
        t0_ms: int,
        t1_ms: int,
        bucket_ms: int | None = None,
        group_by: Mapping[int, int] | None = None,
    ) -> ReadResult[MetricAggregate]:
        """Count, minimum, maximum and mean of one metric over many runs, exact at both ends of the range.

        Args:
            bucket_ms: width of the buckets, which begin at multiples of it since 1970 (the first and the last
                are clipped to the range); None for one bucket that begins at `t0_ms`.
            group_by: run -> group; None puts all runs into group 0.

        Returns:
            the groups that contain a value, ascending.
        """

    def delete(self, runs: Sequence[int]) -> None:
        """Delete everything about these runs, including which of their batches were stored."""

    def drop_before(self, t_ms: int) -> None:
        """Delete samples older than `t_ms`. Older samples stored together with later ones may remain."""

    def shrink_to(self, size_bytes: int) -> None:
        """Delete the oldest samples until the store uses at most `size_bytes`, as far as possible."""

    def flush(self) -> None:
        """Seal everything that was appended."""

    def stats(self) -> StoreStats:
        """Statistics and problems, for operators."""

    def close(self) -> None:
        """Finish submitted batches and close the store. Closing twice has no effect."""
