"""Aggregates over many runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from runvitals.base.buckets import Buckets, Grid, combine, reduce
from runvitals.model.metrics import DEFINITIONS
from runvitals.readers.journals.series import Series
from runvitals.server.charts.series import within
from runvitals.server.library.run_library import AggregatedSeries
from runvitals.store.samples.interface import MetricAggregate

_MAX_BUCKETS = 100_000


def check_aggregate(metric: str, t0: int, t1: int, bucket_ms: int | None) -> None:
    """Check a request for an aggregate over hosts.

    Raises:
        ValueError: the request is invalid; the text says what is allowed.
    """
    match = DEFINITIONS.find(metric)
    if match is not None and match.metric.kind == "rate":
        raise ValueError(
            f"metric={metric}: rates are available for single runs only; aggregate its counter "
            f"{(match.metric.of or '').format(**match.labels)}, or another stored metric"
        )
    if t1 < t0:
        raise ValueError(f"t1 ({t1}) is before t0 ({t0})")
    if bucket_ms is not None and (t1 - t0) // bucket_ms > _MAX_BUCKETS:
        raise ValueError(
            f"bucket={bucket_ms} ms results in {(t1 - t0) // bucket_ms:,} buckets from t0 to t1; "
            f"at most {_MAX_BUCKETS:,} are allowed"
        )


def fleet_grid(t0: int, t1: int, bucket_ms: int | None) -> Grid:
    """Return buckets at multiples of `bucket_ms`, or one that begins at `t0`."""
    if bucket_ms is None:
        return Grid(t0, t1 - t0 + 1, 1)
    return Grid(t0 // bucket_ms * bucket_ms, bucket_ms, t1 // bucket_ms - t0 // bucket_ms + 1)


def fleet_of_series(
    groups: Mapping[str | None, Sequence[Series]], t0: int, t1: int, bucket_ms: int | None
) -> list[AggregatedSeries]:
    """Count, extremes and mean of all series of each group."""
    grid = fleet_grid(t0, t1, bucket_ms)
    parts = {
        group: [reduce(grid, part.t, part.values) for part in (within(item, t0, t1) for item in series)]
        for group, series in groups.items()
    }
    return [_fleet(group, combine(each)) for group, each in sorted(parts.items(), key=_first) if each]


def fleet_of_aggregates(
    names: Mapping[int, str | None], aggregates: Iterable[MetricAggregate]
) -> list[AggregatedSeries]:
    """Return the store's aggregates of several metrics, combined by group."""
    parts: dict[int, list[Buckets]] = {}
    for each in aggregates:
        # An aggregate has no last value; the maximum takes its place and is not returned.
        buckets = Buckets(each.t, each.n, each.min, each.max, each.mean, each.max)
        parts.setdefault(each.group, []).append(buckets)
    groups = [(names[group], combine(each)) for group, each in parts.items()]
    return [_fleet(name, buckets) for name, buckets in sorted(groups, key=_first)]


def _first(item: tuple[str | None, object]) -> str:
    return item[0] or ""


def _fleet(group: str | None, buckets: Buckets) -> AggregatedSeries:
    filled = buckets.n > 0
    statistics = (column[filled] for column in (buckets.min, buckets.max, buckets.mean))
    return AggregatedSeries(group, buckets.t[filled], buckets.n[filled], *statistics)
