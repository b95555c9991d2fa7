"""The rows that a run logged, as they are stored: they are removed when it goes back to a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.model.names import RESERVED, STEP, TRUE_TIME
from runvitals.server.library.stored.lanes import Lane, lanes
from runvitals.server.library.stored.true_times import true_times
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import END_OF_TIME_MS, SampleStore


@dataclass(frozen=True, slots=True)
class WriterRows:
    """Rows of one writer.

    Args:
        writer: its name.
        keys: all that it has logged, and those that are stored with each row.
        t: the times by which the rows are stored.
        steps: of each row.
        times: when each row was logged, in ms UTC: several rows of one time are stored by different ones.
    """

    writer: str
    keys: tuple[str, ...]
    t: Integers
    steps: Floats
    times: Floats

    def where(self, is_chosen: NDArray[np.bool_]) -> WriterRows:
        """Return some of the rows."""
        return replace(self, t=self.t[is_chosen], steps=self.steps[is_chosen], times=self.times[is_chosen])


def stored_rows(store: SampleStore, metadata_store: MetadataStore, run_id: int) -> list[WriterRows]:
    """Return the rows of a run, by writer; writers without any are left out."""
    writers = metadata_store.writers.of_runs([run_id])[run_id]
    rows_by_writer = [
        _rows_of(store, lane) for lane in lanes(metadata_store, run_id, writers) if STEP in lane.logged
    ]
    return [rows for rows in rows_by_writer if len(rows.t)]


def _rows_of(store: SampleStore, lane: Lane) -> WriterRows:
    metrics = [lane.logged[key] for key in RESERVED if key in lane.logged]
    series = {
        column.metric: (column.t, column.values)
        for column in store.read([lane.id], metrics, 0, END_OF_TIME_MS - 1).series
    }
    nothing = np.empty(0, np.int64), np.empty(0)
    t, steps = series.get(lane.logged[STEP], nothing)
    times = true_times(t, series.get(lane.logged.get(TRUE_TIME, -1)))
    rows = WriterRows(lane.writers[-1].writer, tuple(lane.logged), t, steps, times)
    return rows.where(~np.isnan(steps))  # those that were removed have no step
