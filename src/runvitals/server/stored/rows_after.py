"""The rows that a run logged after a step, as they are stored: they are removed when it goes back."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.buckets import Integers
from runvitals.model.names import STEP
from runvitals.server.stored.lanes import lanes
from runvitals.store.metadata import MetadataStore
from runvitals.store.samples.interface import END_OF_TIME_MS, SampleStore


class RowsAfter(NamedTuple):
    """Rows of one writer.

    Args:
        writer: its name.
        keys: all that it has logged, and those that are stored with each row.
        t: the times by which the rows are stored.
    """

    writer: str
    keys: tuple[str, ...]
    t: Integers


def rows_after(
    store: SampleStore, metadata_store: MetadataStore, run_id: int, step: float
) -> list[RowsAfter]:
    """The rows after a step, by writer; writers without any are left out."""
    writers = metadata_store.writers.of_runs([run_id])[run_id]
    found = []
    for lane in lanes(metadata_store, run_id, writers):
        if STEP not in lane.logged:
            continue
        for series in store.read([lane.id], [lane.logged[STEP]], 0, END_OF_TIME_MS - 1).series:
            later = series.t[series.values > step]
            if len(later):
                found.append(RowsAfter(lane.writers[-1].writer, tuple(lane.logged), later))
    return found
