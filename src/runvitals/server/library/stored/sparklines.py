"""The sparklines of a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runvitals.base import deadline
from runvitals.base.buckets import Buckets
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.state import TRAIN
from runvitals.readers.journals.globs import is_glob
from runvitals.server.runs.run_lists import sparkline, sparkline_grid
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.runs.storage.run_states import StoredWriter
from runvitals.store.samples.interface import SampleStore


def sparklines_of(
    store: SampleStore, row: RunRow, writers: Sequence[StoredWriter], numbers: Mapping[str, Sequence[int]]
) -> dict[str, list[float]]:
    """Return the sparklines of a run, by key.

    Args:
        numbers: the numbers of the stored metrics that each key means.
    """
    deadline.check()
    on = sparkline_grid(row.started_ms, row.last_ms)
    metrics = sorted({number for of_key in numbers.values() for number in of_key})
    lanes = {writer.lane_id: writer.role for writer in writers}
    if not metrics or not lanes:
        return {}
    by_metric: dict[int, list[tuple[str, Buckets]]] = {}
    for series in store.read_buckets(sorted(lanes), metrics, on).series:
        by_metric.setdefault(series.metric, []).append((lanes[series.run], series.buckets))
    lines = {}
    for key, of_key in numbers.items():
        sampled = is_glob(key) or DEFINITIONS.find(key) is not None
        lines[key] = sparkline(
            on,
            [
                buckets
                for number in of_key
                for role, buckets in by_metric.get(number, ())
                if not (sampled and role == TRAIN)
            ],
        )
    return lines
