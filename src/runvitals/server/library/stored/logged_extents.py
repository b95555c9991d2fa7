"""How many rows runs have logged, and up to which step, without reading the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from runvitals.base.buckets import Grid
from runvitals.model.names import STEP
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import END_OF_TIME_MS, SampleStore

_ALWAYS = Grid(0, END_OF_TIME_MS, 1)


class LoggedExtent(NamedTuple):
    """The number of rows of a run, and its highest step; None without rows."""

    rows: int = 0
    last_step: float | None = None


def logged_extents(
    store: SampleStore, metadata_store: MetadataStore, run_ids: Sequence[int]
) -> dict[int, LoggedExtent]:
    """Return the extents of runs, by id; those that logged nothing are left out.

    Rows without numbers do not count beside others with some.
    """
    extents = {
        run_id: LoggedExtent(*extent)
        for run_id, extent in metadata_store.media.value_extents(run_ids).items()
    }
    step = metadata_store.metrics.find({STEP}).get(STEP)
    if step is None:
        return extents
    rows_of: dict[int, int] = {}
    writers = metadata_store.writers.of_runs(run_ids)
    run_of = {writer.lane_id: run_id for run_id, of_run in writers.items() for writer in of_run}
    for series in store.read_buckets(sorted(run_of), [step], _ALWAYS).series:
        rows = int(series.buckets.n.sum())
        if rows:
            run_id = run_of[series.run]
            rows_of[run_id] = rows_of.get(run_id, 0) + rows
            extent = extents.get(run_id, LoggedExtent())
            last = float(np.nanmax(series.buckets.max))
            if extent.last_step is not None:
                last = max(last, extent.last_step)
            extents[run_id] = LoggedExtent(max(extent.rows, rows_of[run_id]), last)
    return extents
