"""When runs logged steps: a device that is busy while its run logs none is hung."""

from __future__ import annotations

from typing import Final

import numpy as np
from cachetools import LRUCache

from runvitals.base.buckets import Integers
from runvitals.model.durations import HOUR_MS
from runvitals.model.names import STEP
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.device_time import NO_STEPS
from runvitals.server.usage.host_lanes import UsageRun
from runvitals.store.samples.interface import SampleStore

_MAX_KEPT: Final = 20_000


class StepTimes:
    """Reads the times of steps; remembers the first step of runs, and the range read last."""

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self._store = store
        self._metrics = metadata_store.metrics
        self._first_ms: LRUCache[int, int] = LRUCache(_MAX_KEPT)
        self._last_read: tuple[tuple[int, int, int], Integers] | None = None

    def between(self, run: UsageRun, from_ms: int, until_ms: int) -> Integers:
        """The times of the steps of a run, ascending, from one time until before another."""
        key = run.owner.run_id, from_ms, until_ms
        if self._last_read is None or self._last_read[0] != key:
            self._last_read = key, self._read(run, from_ms, until_ms)
        return self._last_read[1]

    def logged_before(self, run: UsageRun, time_ms: int) -> int | None:
        """When a run logged its first step, if that was before a time."""
        run_id = run.owner.run_id
        if run_id not in self._first_ms and run.step_lanes:
            from_ms, span_ms = run.started_ms, HOUR_MS
            while from_ms < time_ms:
                times = self._read(run, from_ms, min(from_ms + span_ms, time_ms))
                if len(times):
                    self._first_ms[run_id] = int(times[0])
                    break
                from_ms, span_ms = from_ms + span_ms, 2 * span_ms
        first_ms = self._first_ms.get(run_id)
        return first_ms if first_ms is not None and first_ms < time_ms else None

    def forget(self) -> None:
        """Drop what was read: more steps may be there now."""
        self._last_read = None

    def forget_first(self, run_id: int, from_ms: int) -> None:
        """Drop the first step of a run, if steps came that are older."""
        if from_ms < self._first_ms.get(run_id, from_ms):
            del self._first_ms[run_id]

    def _read(self, run: UsageRun, from_ms: int, until_ms: int) -> Integers:
        step = self._metrics.find([STEP]).get(STEP)
        if step is None or not run.step_lanes or from_ms >= until_ms:
            return NO_STEPS
        series = self._store.read(sorted(run.step_lanes), [step], from_ms, until_ms - 1).series
        return np.unique(np.concatenate([NO_STEPS, *(samples.t for samples in series)]))
