"""The newest samples of every run: durable in the log, not yet sealed into chunks, and read from memory.

A run's head is cut off to be sealed: from then on it is read beside a fresh one, until its chunks are on
disk. Readers take views of arrays that only fill up, so they wait for nobody, and nobody for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Set

import numpy as np

from runvitals.buckets import Floats, Integers
from runvitals.store.samples.contract import SampleBatch
from runvitals.store.samples.sqlite_chunks.blocks import Block

_VALUE = 8
_FEWEST_ROWS, _MOST_ROWS = 8, 512
"""Of a stretch: each has twice as many as the one before. To move rows into longer arrays costs more than
all else that is done to add them.
"""


class _Stretch:
    """Rows of one set of columns, in arrays with room for more, which never move."""

    __slots__ = ("count", "metrics", "order", "t", "values")

    def __init__(self, metrics: tuple[int, ...], room: int) -> None:
        self.metrics = metrics
        self.count = 0
        self.t, self.order = np.empty(room, np.int64), np.empty(room, np.int64)
        self.values = np.empty((room, len(metrics)))

    def add(self, t: Integers, values: Floats, first_order: int) -> None:
        """Add rows for which there is room."""
        first, end = self.count, self.count + len(t)
        self.t[first:end] = t
        self.values[first:end] = values
        self.order[first:end] = np.arange(first_order, first_order + len(t))
        self.count = end

    @property
    def room(self) -> int:
        """For how many more rows there is room."""
        return len(self.t) - self.count

    @property
    def bytes(self) -> int:
        return len(self.t) * (len(self.metrics) + 2) * _VALUE

    def block(self) -> Block:
        return Block(self.metrics, self.t[: self.count], self.values[: self.count], self.order[: self.count])


class Head:
    """One run's rows.

    Args:
        seq: the log's row of its first batch.
        since_s: when that came, on the monotonic clock.

    `retry_s`: after a failure, when sealing it is tried again, on the same clock.
    """

    __slots__ = (
        "_stretches", "bytes", "first_seq", "last_seq", "retry_s", "run", "samples", "since_s", "t1", "ticks",
    )  # fmt: skip

    def __init__(self, run: int, seq: int, since_s: float) -> None:
        self.run = run
        self.first_seq = self.last_seq = seq
        self.since_s = since_s
        self.retry_s = 0.0
        self.ticks = self.samples = self.bytes = 0
        self.t1 = 0
        self._stretches: dict[tuple[int, ...], list[_Stretch]] = {}

    def add(self, batch: SampleBatch, seq: int, order: int) -> int:
        """Add a batch; how many bytes more are held."""
        stretches = self._stretches.get(batch.metrics)
        if stretches is None:
            stretches = self._stretches[batch.metrics] = []
        ticks = len(batch.t)
        grown = 0
        if not stretches or stretches[-1].room < ticks:
            room = 2 * len(stretches[-1].t) if stretches else _FEWEST_ROWS
            stretches.append(_Stretch(batch.metrics, max(ticks, min(room, _MOST_ROWS))))
            grown = stretches[-1].bytes
        stretches[-1].add(batch.t, batch.values, order)
        self.t1 = max(self.t1, int(batch.t.max()))
        self.bytes += grown
        self.last_seq = seq
        self.ticks += ticks
        self.samples += ticks * len(batch.metrics)
        return grown

    def blocks(self, wanted: Set[int] | None = None) -> list[Block]:
        """The rows; of those sets of columns that have one of the metrics wanted."""
        return [
            stretch.block()
            for columns, stretches in self._stretches.items()
            if wanted is None or not wanted.isdisjoint(columns)
            for stretch in stretches
        ]


class Heads:
    """The heads of all runs. Batches are added by one thread, heads are cut off and dropped by another.

    Args:
        full_ticks: with so many ticks a head is full.
    """

    def __init__(self, full_ticks: int) -> None:
        self._full_ticks = full_ticks
        self.full = False
        self._lock = threading.Lock()
        self._growing: dict[int, Head] = {}
        self._sealing: dict[int, Head] = {}
        self._order = 0
        self._bytes = 0
        self._roomier = threading.Condition(self._lock)

    def add(self, batches: Iterable[SampleBatch], seq: int) -> None:
        """Add the batches of the log's row `seq`."""
        now_s = time.monotonic()
        with self._lock:
            for batch in batches:
                if not len(batch.t) or not batch.metrics:
                    continue
                head = self._growing.get(batch.run)
                if head is None:
                    head = self._growing[batch.run] = Head(batch.run, seq, now_s)
                self._bytes += head.add(batch, seq, self._order)
                self._order += len(batch.t)
                if head.ticks >= self._full_ticks:
                    self.full = True

    def blocks(self, runs: Iterable[int], wanted: Set[int] | None = None) -> dict[int, list[Block]]:
        """The rows of those of these runs that have any, of these metrics or all."""
        with self._lock:
            found = {}
            for run in runs:
                heads = [head for head in (self._sealing.get(run), self._growing.get(run)) if head]
                if heads:
                    found[run] = [block for head in heads for block in head.blocks(wanted)]
            return found

    def last_times(self, runs: Iterable[int]) -> dict[int, int]:
        """The time of the last row of those of these runs that have any."""
        with self._lock:
            return {
                run: max(head.t1 for head in heads)
                for run in runs
                if (heads := [head for head in (self._sealing.get(run), self._growing.get(run)) if head])
            }

    def runs(self) -> list[int]:
        with self._lock:
            return list(self._growing.keys() | self._sealing.keys())

    def growing(self) -> list[Head]:
        """Heads that could be cut off. `full` is false from now on, until another one is."""
        with self._lock:
            self.full = False
            return list(self._growing.values())

    def unsealed(self) -> list[Head]:
        """Heads that were cut off, and are not sealed: what is left after a failure."""
        with self._lock:
            return list(self._sealing.values())

    def cut(self, run: int) -> Head | None:
        """Take a run's head off, to be sealed; that of the last time if it was not sealed. None if there is
        none.
        """
        with self._lock:
            if run not in self._sealing and run in self._growing:
                self._sealing[run] = self._growing.pop(run)
            return self._sealing.get(run)

    def sealed(self, runs: Iterable[int]) -> None:
        """Let go of heads that were cut off: their samples are in chunks."""
        with self._lock:
            for run in runs:
                self._bytes -= self._sealing.pop(run).bytes
            self._roomier.notify_all()

    def drop(self, run: int) -> None:
        """Forget a run."""
        with self._lock:
            for heads in (self._growing, self._sealing):
                head = heads.pop(run, None)
                if head is not None:
                    self._bytes -= head.bytes
            self._roomier.notify_all()

    def oldest_seq(self) -> int | None:
        """The oldest row of the log that some head still needs."""
        with self._lock:
            heads = (*self._growing.values(), *self._sealing.values())
            return min((head.first_seq for head in heads), default=None)

    def wait_for_room(self, most_bytes: int, timeout_s: float) -> bool:
        """Wait until the heads hold at most so much; False if they still hold more after `timeout_s`."""
        with self._lock:
            return self._roomier.wait_for(lambda: self._bytes <= most_bytes, timeout_s)

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def samples(self) -> int:
        with self._lock:
            return sum(head.samples for head in (*self._growing.values(), *self._sealing.values()))
