"""The series of a host over the runs that were on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runvitals.base.buckets import Buckets, Grid, combine, grid, reduce
from runvitals.server.charts.series import bucket_values
from runvitals.server.hosts.hosts import HostRun
from runvitals.server.library.run_library import ChartData, Library, RunView, SeriesSelection

MAX_RUNS = 50
"""The most runs that one response reads, the newest."""


async def host_series(
    library: Library,
    runs: Sequence[HostRun],
    selection: SeriesSelection,
    t0: int,
    t1: int,
    max_points: int,
) -> dict[str, Any]:
    """Return the fields of `HostSeries`: each key once, whichever run recorded it.

    Args:
        runs: those on the host, the newest first.
        selection: keys, and the host.
    """
    on = grid(t0, t1, max_points)
    parts: dict[str, list[Buckets]] = {}

    def read(view: RunView) -> None:
        for key, buckets in _on_grid(view.read_chart(selection, t0, t1, on, max_points), on):
            parts.setdefault(key, []).append(buckets)

    for run in runs[:MAX_RUNS]:
        opened = await library.open(run.id, run.number)
        await opened.use(read)
    return {
        "t0": t0,
        "t1": t1,
        "bucket_ms": on.width_ms,
        "left_out": max(0, len(runs) - MAX_RUNS),
        "series": [_series(key, combine(buckets_of_runs)) for key, buckets_of_runs in sorted(parts.items())],
    }


def _on_grid(data: ChartData, on: Grid) -> list[tuple[str, Buckets]]:
    if data.buckets is not None:
        return [(item.key, item.buckets) for item in data.buckets if len(item.buckets.t)]
    reduced = [(item.key, reduce(on, item.t, item.values)) for item in data.samples]
    return [(key, buckets) for key, buckets in reduced if len(buckets.t)]


def _series(key: str, buckets: Buckets) -> dict[str, Any]:
    return {
        "key": key,
        "t": buckets.t.tolist(),
        "value": bucket_values(key, buckets).tolist(),
        "min": buckets.min.tolist(),
        "max": buckets.max.tolist(),
    }
