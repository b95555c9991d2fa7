"""Rows that are gathered before they are added to summaries: readers see them, each row counts once."""

from __future__ import annotations

from typing import Any

import numpy as np

from runvitals.server.database.database import Database
from runvitals.server.ingest.row_statistics import RowStatistics
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.pending_summaries import PendingSummaries
from runvitals.server.runs.storage.sections import SectionUpdate
from tests.server.database.runs import T0, joined, uids, where


def rows(metadata_store: MetadataStore, run_id: int, seq: int, **values: list[float]) -> RowStatistics:
    columns = np.array(list(values.values()), np.float64)
    return RowStatistics(
        run_id,
        "train.n1",
        len(values),
        seq,
        tuple(metadata_store.metrics.ids(values).values()),
        np.full(len(values), columns.shape[1]),
        columns.sum(axis=1),
        columns.min(axis=1),
        columns.max(axis=1),
        columns[:, -1],
        np.full(len(values), T0 + seq),
        float(seq),
    )


def summary(metadata_store: MetadataStore, run_id: int) -> dict[str, Any]:
    return metadata_store.sections.read([run_id])[run_id].summary()


def test_readers_see_gathered_rows(metadata_store: MetadataStore) -> None:
    pending, run_id = metadata_store.pending_summaries, joined(metadata_store, "abc").run_id
    kinds = {name: {"summary": name} for name in ("min", "max", "mean")}
    metadata_store.sections.merge([SectionUpdate(run_id, "metrics", kinds, T0)])
    names = ("min", "max", "mean", "last")
    assert not pending.gathers(run_id, "train.n1", 4)
    for _ in range(2):  # the second time it is included already
        pending.add([rows(metadata_store, run_id, 1, **{key: [5.0] for key in names})])
    assert pending.gathers(run_id, "train.n1", 4)
    for seq, value in ((3, 9.0), (2, 1.0), (4, 5.0)):
        pending.gather(rows(metadata_store, run_id, seq, **{key: [value] for key in names}))
    assert uids(metadata_store, where("summary.mean = 5")) == ["abc"]
    assert summary(metadata_store, run_id) == {"min": 1.0, "max": 9.0, "mean": 5.0, "last": 5.0}
    pending.add([rows(metadata_store, run_id, 4, **{key: [100.0] for key in names})])
    assert summary(metadata_store, run_id)["max"] == 9.0


def test_rows_of_a_run_that_was_deleted_for_good_are_dropped(metadata_store: MetadataStore) -> None:
    pending = metadata_store.pending_summaries
    gone, kept = (joined(metadata_store, uid).run_id for uid in ("gone", "kept"))
    for run_id in (gone, kept):
        pending.add([rows(metadata_store, run_id, 1, loss=[1.0])])
        pending.gather(rows(metadata_store, run_id, 2, loss=[2.0]))
    metadata_store.runs.delete([gone], T0)
    metadata_store.runs.purge([gone], T0)
    pending.flush()
    assert summary(metadata_store, kept) == {"loss": 2.0}
    assert pending.incomplete() == [kept]


def test_rows_are_kept_when_they_cannot_be_written(metadata_store: MetadataStore) -> None:
    pending, run_id = metadata_store.pending_summaries, joined(metadata_store, "abc").run_id
    pending.add([rows(metadata_store, run_id, 1, loss=[1.0])])
    broken = rows(metadata_store, run_id, 2, loss=[2.0])
    metric_ids, broken.metric_ids = broken.metric_ids, (2**31 - 1,)  # a metric that does not exist
    pending.gather(broken)
    try:
        pending.flush()
    except KeyError:
        broken.metric_ids = metric_ids
    assert summary(metadata_store, run_id) == {"loss": 2.0}


def test_the_summaries_of_idle_runs_are_complete(address: str, metadata_store: MetadataStore) -> None:
    now_s = [0.0]
    run_id = joined(metadata_store, "abc").run_id
    database = Database(address)
    pending = PendingSummaries(database, metadata_store.metrics, lambda: now_s[0])
    pending.add([rows(metadata_store, run_id, 1, loss=[1.0])])
    now_s[0] = 29.0
    pending.close_idle()
    assert pending.incomplete() == [run_id]
    pending.gather(rows(metadata_store, run_id, 2, loss=[2.0]))
    now_s[0] = 100.0
    pending.close_idle()
    assert pending.incomplete() == [run_id], "its rows have not been written"
    pending.flush()
    pending.close_idle()
    assert pending.incomplete() == []
    assert not pending.gathers(run_id, "train.n1", 1)
    database.close()
