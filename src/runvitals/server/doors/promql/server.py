"""What the routes of Prometheus' query API work with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runvitals.model.filter import ReadableRuns
from runvitals.server.doors.promql.series_source import SeriesSource
from runvitals.server.http.workers import Workers
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore

_THREADS: Final = 2


class PromqlServer:
    """What the routes work with.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self.clock = clock
        self.workers = Workers(_THREADS)

    def source(self, readable: ReadableRuns | None) -> SeriesSource:
        """Return the series of the runs that a requester may read; None: of all runs."""
        return SeriesSource(self._store, self._metadata_store, readable, self.clock())
