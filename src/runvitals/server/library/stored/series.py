"""Series from the store: samples and buckets, with derived rates, and gaps where no monitor was running."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Grid, Integers, reduce
from runvitals.readers.journals.rates import Rate, derive, rate_of
from runvitals.readers.journals.series import Series
from runvitals.server.charts.series import within
from runvitals.server.library.run_library import BucketedSeries
from runvitals.server.library.stored.lanes import Lane
from runvitals.store.samples.interface import (
    END_OF_TIME_MS,
    DamagedData,
    ReadResult,
    SampleStore,
    SeriesBuckets,
    SeriesSamples,
)

_LOOK_BACK_MS = (120_000, 3_600_000, END_OF_TIME_MS)
"""How far before a range to search for the sample that the first rate is computed from."""
_NEAR_MS = 300_000
"""A key that is sampled at least this often has a gap where its monitor was restarted."""
_WIDE_MS = 28 * 86_400_000
_NARROW_MS = 10_000
_MAX_DAMAGED = 1000

Columns = dict[tuple[int, int], tuple[Integers, Floats]]
"""(lane, metric) → times and values."""


class RequestedSeries(NamedTuple):
    """A requested series: a stored one, or the rate of a stored counter."""

    lane: Lane
    key: str
    metric: int
    rate: Rate | None

    @property
    def identity(self) -> tuple[str, str, str]:
        """Key, host and role."""
        return (self.rate.key if self.rate else self.key, self.lane.host, self.lane.role)

    @property
    def stored(self) -> tuple[int, int]:
        """(lane, metric) in the store."""
        return self.lane.id, self.metric


def requested_series(lanes: Iterable[Lane], matches: Callable[[Lane, str], bool]) -> list[RequestedSeries]:
    """Return the stored series and rates that match, each rate after its counter."""
    series: list[RequestedSeries] = []
    for lane in lanes:
        for key, metric in lane.sampled.items():
            deadline.check()
            if matches(lane, key):
                series.append(RequestedSeries(lane, key, metric, None))
            rate = rate_of(key)
            if rate is not None and matches(lane, rate.key):
                series.append(RequestedSeries(lane, key, metric, rate))
    return series


@dataclass(frozen=True, slots=True)
class Extent:
    """Count, times and extremes of the values of a stored series."""

    n: int
    first_ms: int
    last_ms: int
    min: float
    max: float
    last: float


class StoredSeries:
    """Reads the series of a run's lanes.

    Attributes:
        names: (lane, metric) → key and host, for reports of unreadable data.
        damaged: unreadable data so far, as texts.
        noted: the same since a caller last emptied it.
    """

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._gaps: dict[
            tuple[int, int, int], int
        ] = {}  # (lane, metric, start of the writer) → time of the gap
        self._searched: set[tuple[int, int]] = (
            set()
        )  # (lane, start of the writer): gaps that were not found yet
        self._first: dict[tuple[int, int], int] = {}
        self.names: dict[tuple[int, int], tuple[str, str]] = {}
        self.damaged: dict[str, None] = {}
        self.noted: dict[str, None] = {}

    def refresh(self, lanes: Iterable[Lane]) -> None:
        """Search again for gaps that were not found, and take the new keys."""
        self._searched.clear()
        self.names = {
            (lane.id, metric): (key, lane.host)
            for lane in lanes
            for metrics in (lane.sampled, lane.logged)
            for key, metric in metrics.items()
        }

    def samples(self, requested: Sequence[RequestedSeries], t0: int, t1: int) -> list[Series]:
        """Return the samples from `t0` to `t1`, both included, of every requested series."""
        columns = self._read_with_gaps([item for item in requested if item.rate is None], t0, t1)
        counters = self._counters([item for item in requested if item.rate is not None], t0, t1)
        samples = []
        for item in requested:
            deadline.check()
            t, values = (columns if item.rate is None else counters).get(item.stored, _NOTHING)
            if item.rate is not None:
                t, values = derive(t, values, item.rate.factor)
            series = Series(*item.identity, t, values)
            samples.append(series if item.rate is None else within(series, t0, t1))
        return samples

    def buckets(self, requested: Sequence[RequestedSeries], on: Grid) -> list[BucketedSeries]:
        """Return every requested series on a grid. Series without samples there are left out."""
        end = on.t0_ms + on.count * on.width_ms - 1
        plain = [item for item in requested if item.rate is None]
        buckets_by_key = self._read_buckets(plain, on)
        for item in plain:
            if item.stored in buckets_by_key:
                gaps = [t for t in self._gaps_of(item) if on.t0_ms <= t <= end]
                buckets_by_key[item.stored] = _with_empty(buckets_by_key[item.stored], on, gaps)
        derived = self.samples([item for item in requested if item.rate is not None], on.t0_ms, end)
        of_rates = {
            (series.key, series.host, series.role): reduce(on, series.t, series.values) for series in derived
        }
        in_buckets = []
        for item in requested:
            buckets = buckets_by_key.get(item.stored) if item.rate is None else of_rates.get(item.identity)
            if buckets is not None and len(buckets.t):
                in_buckets.append(BucketedSeries(*item.identity, buckets))
        return in_buckets

    def counts(self, requested: Sequence[RequestedSeries], t0: int, t1: int) -> dict[tuple[int, int], int]:
        """About how many samples the requested series have from `t0` to `t1`, without gaps."""
        on = Grid(t0, t1 - t0 + 1, 1)
        return {key: int(buckets.n.sum()) for key, buckets in self._read_buckets(requested, on).items()}

    def extents(self, requested: Sequence[RequestedSeries], from_ms: int) -> dict[tuple[int, int], Extent]:
        """Return the extents of stored series; `from_ms` is about the start of the run."""
        # Buckets of four weeks, one of which begins with the run: most chunks are inside one bucket, so
        # they need not be decoded.
        first = from_ms % _WIDE_MS
        on = Grid(first, _WIDE_MS, (END_OF_TIME_MS - first) // _WIDE_MS)
        buckets_by_key = {
            key: buckets for key, buckets in self._read_buckets(requested, on).items() if int(buckets.n.sum())
        }
        newest = self._newest(buckets_by_key)
        self._find_first(buckets_by_key, on.width_ms)
        # If the first bucket cannot be read, the best known time is the start of the run.
        began = {key: self._first.get(key, from_ms) for key in buckets_by_key}
        return {
            key: Extent(
                n=int(buckets.n.sum()),
                first_ms=began[key],
                last_ms=newest.get(key, began[key]),
                min=float(np.nanmin(buckets.min)),
                max=float(np.nanmax(buckets.max)),
                last=float(buckets.last[np.flatnonzero(buckets.n)[-1]]),
            )
            for key, buckets in buckets_by_key.items()
        }

    def values_since(self, lane: Lane, metrics: Sequence[int], from_ms: int) -> dict[int, Buckets]:
        """Return the values of some series of a lane from a time on, in buckets of four weeks."""
        on = Grid(from_ms, _WIDE_MS, -(-(END_OF_TIME_MS - from_ms) // _WIDE_MS))
        result = self._store.read_buckets([lane.id], metrics, on)
        self._note(result)
        return {item.metric: item.buckets for item in result.series}

    def _newest(self, keys: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
        if not keys:
            return {}
        return {
            (latest.run, metric): t
            for latest in self._store.latest(*_ids(keys))
            for metric, t in zip(latest.metrics.tolist(), latest.t.tolist(), strict=True)
        }

    def _find_first(self, first_buckets: dict[tuple[int, int], Buckets], width_ms: int) -> None:
        """Find the time of the first value of each series: search its first bucket with narrower ones."""
        keys_by_start: dict[int, list[tuple[int, int]]] = {}
        for key, buckets in first_buckets.items():
            start = int(buckets.t[np.flatnonzero(buckets.n)[0]])
            if not start <= self._first.get(key, -1) < start + width_ms:
                keys_by_start.setdefault(start, []).append(key)
        for start, starting in keys_by_start.items():
            if width_ms <= _NARROW_MS:
                for key, (t, values) in self._read(starting, start, start + width_ms - 1).items():
                    positions = np.flatnonzero(~np.isnan(values))
                    if len(positions):
                        self._first[key] = int(t[positions[0]])
                continue
            narrower = max(_NARROW_MS, width_ms // 500)
            on = Grid(start, narrower, -(-width_ms // narrower))
            buckets_by_key = self._collect(self._store.read_buckets(*_ids(starting), on), set(starting))
            self._find_first(
                {key: buckets for key, buckets in buckets_by_key.items() if buckets.n.any()}, narrower
            )

    def _counters(self, requested: Sequence[RequestedSeries], t0: int, t1: int) -> Columns:
        """Samples of counters, from the last one before `t0` on."""
        columns = self._read_with_gaps(requested, t0, t1)
        start = t0
        missing = {item.stored: item for item in requested}
        for back_ms in _LOOK_BACK_MS:
            end, start = start - 1, max(0, t0 - back_ms)
            if not missing or end < start:
                break
            for key, (t, values) in self._read_with_gaps(list(missing.values()), start, end).items():
                if len(t):
                    later = columns.get(key, _NOTHING)
                    columns[key] = np.append(t[-1:], later[0]), np.append(values[-1:], later[1])
                    del missing[key]
        return columns

    def _read_with_gaps(self, requested: Sequence[RequestedSeries], t0: int, t1: int) -> Columns:
        columns = self._read([item.stored for item in requested], t0, t1)
        for item in requested:
            gaps = [t for t in self._gaps_of(item) if t0 <= t <= t1]
            if gaps:
                t, values = columns.get(item.stored, _NOTHING)
                rows = np.searchsorted(t, gaps)
                columns[item.stored] = np.insert(t, rows, gaps), np.insert(values, rows, np.nan)
        return columns

    def _gaps_of(self, requested: RequestedSeries) -> list[int]:
        """Times halfway between the last sample of a monitor and the first one after its restart."""
        writers = requested.lane.writers
        if len(writers) < 2:
            return []
        gaps = set()
        for before, writer in itertools.pairwise(writers):
            key = (requested.lane.id, writer.started_ms)
            if (*requested.stored, writer.started_ms) not in self._gaps and key not in self._searched:
                self._searched.add(key)
                self._find_gaps(requested.lane, min(before.last_ms, writer.started_ms), writer.started_ms)
            gaps.add(self._gaps.get((*requested.stored, writer.started_ms)))
        return sorted(t for t in gaps if t is not None)

    def _find_gaps(self, lane: Lane, last_ms: int, start_ms: int) -> None:
        """Find the gaps of all series of a lane between two writers. Some may be found only later."""
        result = self._store.read(
            [lane.id], list(lane.sampled.values()), last_ms - _NEAR_MS, start_ms + _NEAR_MS
        )
        for series in result.series:
            row = int(np.searchsorted(series.t, start_ms))
            if 0 < row < len(series.t):
                middle = (int(series.t[row - 1]) + int(series.t[row])) // 2
                self._gaps[lane.id, series.metric, start_ms] = middle

    def _read(self, keys: Iterable[tuple[int, int]], t0: int, t1: int) -> Columns:
        requested = set(keys)
        if not requested or t1 < t0:
            return {}
        result = self._store.read(*_ids(requested), t0, t1)
        self._note(result)
        return {
            (item.run, item.metric): (item.t, item.values)
            for item in result.series
            if (item.run, item.metric) in requested
        }

    def _read_buckets(self, requested: Sequence[RequestedSeries], on: Grid) -> dict[tuple[int, int], Buckets]:
        pairs = {item.stored for item in requested}
        return self._collect(self._store.read_buckets(*_ids(pairs), on), pairs) if pairs else {}

    def _collect(
        self, result: ReadResult[SeriesBuckets], requested: set[tuple[int, int]]
    ) -> dict[tuple[int, int], Buckets]:
        self._note(result)
        return {
            (item.run, item.metric): item.buckets
            for item in result.series
            if (item.run, item.metric) in requested
        }

    def _note(self, result: ReadResult[SeriesSamples] | ReadResult[SeriesBuckets]) -> None:
        self.note(result.damaged)

    def note(self, damaged: Iterable[DamagedData]) -> None:
        """Record unreadable data, to report it."""
        for damage in damaged:
            text = self._describe(damage)
            self.noted[text] = None
            if len(self.damaged) < _MAX_DAMAGED:
                self.damaged[text] = None

    def _describe(self, damage: DamagedData) -> str:
        key, host = self.names.get(
            (damage.run or 0, -1 if damage.metric is None else damage.metric), ("", "")
        )
        what = f"samples of {key} on {host}" if key else "samples"
        return (
            f"{what} from {_moment(damage.t0_ms)} to {_moment(damage.t1_ms)} cannot be read: {damage.reason}"
        )


def _moment(t_ms: int) -> str:
    return datetime.fromtimestamp(t_ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


_NOTHING: tuple[Integers, Floats] = (np.empty(0, np.int64), np.empty(0))


def _ids(keys: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the lanes and the metrics of some series."""
    lanes, metrics = zip(*keys, strict=True)
    return sorted(set(lanes)), sorted(set(metrics))


def _with_empty(buckets: Buckets, on: Grid, times: Sequence[int]) -> Buckets:
    """Return the buckets with empty ones added for these times."""
    starts = {on.t0_ms + (t - on.t0_ms) // on.width_ms * on.width_ms for t in times}
    new = np.array(sorted(starts.difference(buckets.t.tolist())), np.int64)
    if not len(new):
        return buckets
    rows = np.searchsorted(buckets.t, new)
    columns = (
        np.insert(column, rows, np.nan) for column in (buckets.min, buckets.max, buckets.mean, buckets.last)
    )
    return Buckets(np.insert(buckets.t, rows, new), np.insert(buckets.n, rows, 0), *columns)
