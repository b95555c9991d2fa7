"""`WatchedRuns`: looks at the newest values of the runs that go on, whichever server they send to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cachetools import LRUCache

from runvitals.findings.pace import Urgency
from runvitals.findings.run_watch import NewestValues, RunWatch, WatchedKeys
from runvitals.server.findings.storage.results import RunningRun
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import LatestSample, SampleStore

_LANES_AT_ONCE: Final = 500
MAX_VALUES: Final = 2_000_000
"""Newest values of all runs that are looked at: about 100 MB. Beyond them, runs are judged seldom."""
_MAX_KEYS: Final = 10_000
"""Sets of keys that are remembered."""


class RunToJudge(NamedTuple):
    """A run that goes on and is to be judged. In the order of these fields, the smallest comes first."""

    urgency: Urgency
    not_waited_ms: int
    run_id: int
    uid: str


class WatchedRuns:
    """The runs that go on. In memory only: a server that starts looks at all of them anew."""

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._watches: dict[int, RunWatch] = {}
        self._uids: dict[int, str] = {}
        self._keys: LRUCache[bytes, WatchedKeys] = LRUCache(_MAX_KEYS)

    @property
    def ids(self) -> frozenset[int]:
        """The runs that went on when they were last looked at."""
        return frozenset(self._uids)

    def forget(self) -> None:
        """Forget all runs: another server watches them now."""
        self._watches, self._uids = {}, {}

    def look(self, running: Sequence[RunningRun], now_ms: int) -> None:
        """Look at the newest values of runs; all others are forgotten."""
        self._uids = {run.run_id: run.uid for run in running}
        self._watches = {
            run.run_id: self._watches.get(run.run_id) or RunWatch(run.started_ms) for run in running
        }
        run_of_lane = {run.lane_id: run.run_id for run in running}
        remaining_values = MAX_VALUES
        lanes = sorted(run_of_lane)
        for first in range(0, len(lanes), _LANES_AT_ONCE):
            latest = self._store.latest(lanes[first : first + _LANES_AT_ONCE])
            by_run: dict[int, list[NewestValues]] = {}
            for each in latest:
                by_run.setdefault(run_of_lane[each.run], []).append(self._newest(each))
            for run_id, of_lanes in by_run.items():
                self._watches[run_id].look(now_ms, of_lanes)
            remaining_values -= sum(len(each.metrics) for each in latest)
            if remaining_values <= 0:
                break

    def due(self, now_ms: int) -> list[RunToJudge]:
        """Return the runs that are to be judged, the most urgent first."""
        due = [
            RunToJudge(urgency, -watch.pace.waited_ms(now_ms), run_id, self._uids[run_id])
            for run_id, watch in self._watches.items()
            if (urgency := watch.pace.due(now_ms)) is not None
        ]
        return sorted(due)

    def judged(self, run_id: int, now_ms: int, cost_s: float) -> None:
        """Take note of a judgement, and of the CPU time that it took."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.pace.judged(now_ms, cost_s)

    def _newest(self, latest: LatestSample) -> NewestValues:
        name = latest.metrics.tobytes()
        keys = self._keys.get(name)
        if keys is None:
            numbers = latest.metrics.tolist()
            keys_by_number = self._metadata_store.metrics.keys(numbers)
            keys = self._keys[name] = WatchedKeys(tuple(keys_by_number.get(number, "") for number in numbers))
        return NewestValues(latest.run, keys, latest.t, latest.values)
