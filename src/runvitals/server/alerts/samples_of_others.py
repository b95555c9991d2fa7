"""`SamplesOfOthers`: the leader reads what other servers have stored, so that alert rules see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from runvitals.model.durations import MINUTE_MS
from runvitals.server.alerts.sample_queue import SampleQueue
from runvitals.store.samples.interface import SampleBatch, SampleStore, SeriesSamples, StoreError
from runvitals.store.supervised_thread import SupervisedThread

_EVERY_S: Final = 1.0
_FIRST_MS: Final = MINUTE_MS
"""How far back a host is read that was not read before. Rules fill their windows themselves."""
_LANES_AT_ONCE: Final = 500
_MAX_LANES: Final = 100_000


class SamplesOfOthers:
    """A thread that reads new samples of hosts that send to other servers.

    Args:
        leads: whether this server evaluates the rules.

    Attributes:
        queue: what rules have not seen yet; the samples are added to it.
    """

    def __init__(self, store: SampleStore, leads: Callable[[], bool]) -> None:
        self._store = store
        self._leads = leads
        self.queue = SampleQueue()
        self._waiting: dict[int, int] = {}
        self._read_ms: dict[int, int] = {}
        self._lock = threading.Lock()
        self.thread = SupervisedThread("samples-of-others", self._turn, every_s=_EVERY_S)

    def add(self, lanes: Mapping[int, int]) -> None:
        """Other servers have stored samples up to these times, by lane."""
        if self._leads() and self.queue.has_rules:
            with self._lock:
                self._waiting.update(lanes)

    def _turn(self) -> bool:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if not self._leads():
            self._read_ms.clear()
            waiting = {}
        while waiting:
            batch = {lane: waiting[lane] for lane in list(waiting)[:_LANES_AT_ONCE]}
            try:
                self.queue.add(self._read(batch))
            except StoreError:
                with self._lock:  # some of these hosts may send nothing more
                    self._waiting = {**waiting, **self._waiting}
                raise
            waiting = {lane: t for lane, t in waiting.items() if lane not in batch}
        while len(self._read_ms) > _MAX_LANES:
            self._read_ms.pop(next(iter(self._read_ms)))
        return not self.thread.closing.is_set()

    def _read(self, lanes: Mapping[int, int]) -> list[SampleBatch]:
        since = {lane: self._read_ms.get(lane, t - _FIRST_MS) + 1 for lane, t in lanes.items()}
        series = self._store.read(list(lanes), None, min(since.values()), max(lanes.values())).series
        self._read_ms.update(lanes)
        return _batches(series, since)


def _batches(series: list[SeriesSamples], since: Mapping[int, int]) -> list[SampleBatch]:
    """Return series of the same run and times as one batch."""
    columns: dict[tuple[int, bytes], list[SeriesSamples]] = {}
    for samples in series:
        new = samples.t >= since[samples.run]
        if new.any():
            part = SeriesSamples(samples.run, samples.metric, samples.t[new], samples.values[new])
            columns.setdefault((samples.run, part.t.tobytes()), []).append(part)
    return [
        SampleBatch(
            run,
            0,
            0,
            tuple(samples.metric for samples in of_times),
            of_times[0].t,
            np.column_stack([samples.values for samples in of_times]),
        )
        for (run, _), of_times in columns.items()
    ]
