"""Runs for tests of the metadata store, in a line each."""

from __future__ import annotations

from typing import Any

from runvitals.model.filter import Filter, Predicate
from runvitals.model.run_sort import RunSort
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration

EVERYTHING = Filter()
T0 = 1_760_000_000_000  # 2025-10-09 08:53:20 UTC


def joined(metadata_store: MetadataStore, uid: str, *, now_ms: int = T0, **writer: Any) -> RegisteredWriter:
    """A run with one monitor."""
    writer = {"writer": "monitor.node1.a", "project": "digits", **writer}
    return metadata_store.writers.join([WriterRegistration(uid, **writer)], now_ms)[0]


def made(
    metadata_store: MetadataStore, uid: str, *, started_ms: int = T0, project: str = "digits", **sections: Any
) -> int:
    """A run with sections: its number."""
    run_id = joined(metadata_store, uid, now_ms=T0, started_ms=started_ms, project=project).run_id
    metadata_store.sections.merge(
        [SectionUpdate(run_id, name, values, T0) for name, values in sections.items()]
    )
    return run_id


def where(*predicates: str) -> Filter:
    return Filter(where=tuple(Predicate.parse(text) for text in predicates))


def uids(
    metadata_store: MetadataStore,
    filters: Filter = EVERYTHING,
    by: str = "started_ms",
    descending: bool = True,
    limit: int = 1000,
    now_ms: int = T0,
) -> list[str]:
    """The ids of all runs of a filter in order, through as many pages as it takes."""
    sort, after, uids_read = RunSort(by, descending), None, []
    while True:
        page = metadata_store.runs.page(filters, sort, now_ms, limit, after)
        uids_read += [run.uid for run in page.runs]
        after = page.next
        if after is None:
            return uids_read
