"""Logged values of the metrics that automations watch, as they arrive."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from runvitals.server.ingest.validation import ValidEnvelope
from runvitals.server.runs.storage.metrics import KeyList

_MOST: Final = 10_000
"""Of batches that wait. Beyond it the oldest are left out: automations are late, but ingest is not."""


class MetricPoints(NamedTuple):
    """Values of one metric of a run, in order."""

    run_id: int
    metric: str
    values: list[float]


class MetricFeed:
    """Passes values from ingest to the thread of automations.

    Args:
        keys_of: the keys of some metric ids.

    Attributes:
        watched: the metrics that automations are about. Ingest does nothing for others.
    """

    def __init__(self, keys_of: Callable[[Sequence[int]], Mapping[int, str]]) -> None:
        self.watched: frozenset[str] = frozenset()
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._keys_of = keys_of
        self._waiting: deque[MetricPoints] = deque(maxlen=_MOST)

    def watch(self, metric: str) -> None:
        """Watch a metric from now on: an automation about it was stored."""
        with self._lock:
            self._asked.add(metric)
            self.watched |= {metric}

    def watch_all(self, stored: Callable[[], Collection[str]]) -> None:
        """Watch the metrics of the automations that are stored, and what is asked for meanwhile."""
        with self._lock:
            self._asked.clear()
        metrics = stored()
        with self._lock:
            self.watched = frozenset(metrics) | self._asked

    def take(self, run_id: int, valid: ValidEnvelope) -> None:
        """Take the watched values of an envelope that was stored, if it has rows of `log()`."""
        columns, keys = valid.columns, valid.keys
        if not self.watched or columns is None or not columns.has_step or not keys:
            return
        if isinstance(keys, KeyList):
            found = self._keys_of(keys.metric_ids)
            names = [found[metric_id] for metric_id in keys.metric_ids]
        else:
            names = list(keys)
        for column, name in enumerate(names):
            if name in self.watched:
                values = columns.values[:, column]
                self._waiting.append(MetricPoints(run_id, name, values[~np.isnan(values)].tolist()))

    def drain(self) -> list[MetricPoints]:
        """What has arrived since the last call."""
        found = []
        while self._waiting:
            found.append(self._waiting.popleft())
        return found
