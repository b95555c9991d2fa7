"""Keeps the system statistics of stored runs up to date, so that lists need not read samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from runvitals.model.durations import HOUR_MS
from runvitals.server.clock import Due
from runvitals.server.library.stored.run import StoredRun
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_statistics import ComputedStatistics, DueRun
from runvitals.server.runs.system_statistics import statistics_of
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

_EVERY_S: Final = 15.0
_WORK_S: Final = 2.0
"""How long one turn reads samples: a seventh of a core at most, also with many runs from before."""
_AT_ONCE: Final = 500
_FULL_CHECK_MS: Final = HOUR_MS


class StatisticsUpdater:
    """A supervised thread that computes the statistics of runs.

    Of new runs, of those that have just ended, and of running ones once a minute; at the start, and every
    hour, also of all others that lack them. `with` ends it.

    Args:
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.
        leads: whether this server does it; another one does otherwise.
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._store = store
        self._metadata_store = metadata_store
        self._clock = clock
        self._monotonic = monotonic
        self._newest = 0
        self._running: set[int] = set()
        self._full_check = Due()
        self.thread = SupervisedThread("run-statistics", self._turn, every_s=_EVERY_S)

    def __enter__(self) -> StatisticsUpdater:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        if self._leads():
            self.update()
        return True

    def update(self) -> None:
        """Compute what is due, while there is time."""
        now_ms = self._clock()
        table = self._metadata_store.run_statistics
        running = table.running(now_ms)
        full = self._full_check.at(now_ms)
        if full:
            due = table.due(now_ms, _AT_ONCE)
        else:
            due = table.due(now_ms, _AT_ONCE, max(1, self._newest), running | self._running)
        computed = self._compute(due)
        table.put(computed)
        if len(computed) == len(due) < _AT_ONCE:  # otherwise the next turn goes on with what is still due
            self._newest = max((self._newest, *(run.id for run in due)))
            self._running = running
            if full:
                self._full_check.wait(now_ms, _FULL_CHECK_MS)

    def _compute(self, due: Sequence[DueRun]) -> list[ComputedStatistics]:
        """Return the statistics of runs, of as many as there is time for."""
        until_s = self._monotonic() + _WORK_S
        statistics = []
        for due_run in due:
            if self._monotonic() > until_s or self.thread.closing.is_set():
                break
            run = StoredRun(due_run.uid, due_run.id, self._store, self._metadata_store)
            run.refresh()
            values = statistics_of(run, due_run.started_ms, due_run.last_ms)
            statistics.append(ComputedStatistics(due_run.id, due_run.last_ms, values))
        return statistics
