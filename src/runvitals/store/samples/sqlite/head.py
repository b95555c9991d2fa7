"""The heads: the newest samples of every run, in memory. They are durable in the log, but not yet in chunks.

To seal a run, its head is detached: a new one takes further samples, and both are read until the chunks are
on disk. Readers get views of arrays that are only appended to, so readers and writers do not block each
other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Set

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite.blocks import Block

_VALUE = 8
_MIN_ROWS, _MAX_ROWS = 8, 512
"""Capacity of buffers: each has twice the capacity of the one before. Moving rows to larger arrays would cost
more than everything else in adding them.
"""


class _RowBuffer:
    """Rows of one set of columns, in arrays of fixed capacity."""

    __slots__ = ("count", "metrics", "order", "t", "values")

    def __init__(self, metrics: tuple[int, ...], capacity: int) -> None:
        self.metrics = metrics
        self.count = 0
        self.t, self.order = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        self.values = np.empty((capacity, len(metrics)))

    def add(self, t: Integers, values: Floats, first_order: int) -> None:
        """Add rows; at most `room`."""
        first, end = self.count, self.count + len(t)
        self.t[first:end] = t
        self.values[first:end] = values
        self.order[first:end] = np.arange(first_order, first_order + len(t))
        self.count = end

    @property
    def room(self) -> int:
        """The number of rows that can still be added."""
        return len(self.t) - self.count

    @property
    def bytes(self) -> int:
        return len(self.t) * (len(self.metrics) + 2) * _VALUE

    def block(self) -> Block:
        return Block(self.metrics, self.t[: self.count], self.values[: self.count], self.order[: self.count])


class Head:
    """One run's rows.

    Args:
        seq: the row of the log with its first batch.
        since_s: when that was added, on the monotonic clock.

    Attributes:
        retry_s: when to retry sealing after a failure, on the same clock.
    """

    __slots__ = (
        "_buffers", "bytes", "first_seq", "last_seq", "retry_s", "run", "samples", "since_s", "t1", "ticks",
    )  # fmt: skip

    def __init__(self, run: int, seq: int, since_s: float) -> None:
        self.run = run
        self.first_seq = self.last_seq = seq
        self.since_s = since_s
        self.retry_s = 0.0
        self.ticks = self.samples = self.bytes = 0
        self.t1 = 0
        self._buffers: dict[tuple[int, ...], list[_RowBuffer]] = {}

    def add(self, batch: SampleBatch, seq: int, order: int) -> int:
        """Add a batch. Returns the number of bytes allocated."""
        buffers = self._buffers.get(batch.metrics)
        if buffers is None:
            buffers = self._buffers[batch.metrics] = []
        ticks = len(batch.t)
        allocated = 0
        if not buffers or buffers[-1].room < ticks:
            capacity = 2 * len(buffers[-1].t) if buffers else _MIN_ROWS
            buffers.append(_RowBuffer(batch.metrics, max(ticks, min(capacity, _MAX_ROWS))))
            allocated = buffers[-1].bytes
        buffers[-1].add(batch.t, batch.values, order)
        self.t1 = max(self.t1, int(batch.t.max()))
        self.bytes += allocated
        self.last_seq = seq
        self.ticks += ticks
        self.samples += ticks * len(batch.metrics)
        return allocated

    def blocks(self, selected: Set[int] | None = None) -> list[Block]:
        """Return the rows; only of the sets of columns that contain a wanted metric."""
        return [
            buffer.block()
            for columns, buffers in self._buffers.items()
            if selected is None or not selected.isdisjoint(columns)
            for buffer in buffers
        ]


class Heads:
    """The heads of all runs. One thread adds batches, another one detaches and drops heads.

    Args:
        full_ticks: number of ticks at which a head is full.

    Attributes:
        full: a head has become full since the last call of `growing`.
    """

    def __init__(self, full_ticks: int) -> None:
        self._full_ticks = full_ticks
        self.full = False
        self._lock = threading.Lock()
        self._growing: dict[int, Head] = {}
        self._sealing: dict[int, Head] = {}
        self._order = 0
        self._bytes = 0
        self._memory_freed = threading.Condition(self._lock)

    def add(self, batches: Iterable[SampleBatch], seq: int) -> None:
        """Add the batches of row `seq` of the log."""
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

    def blocks(self, runs: Iterable[int], selected: Set[int] | None = None) -> dict[int, list[Block]]:
        """Return the rows of the runs that have any, of these metrics or all."""
        with self._lock:
            blocks = {}
            for run in runs:
                heads = [head for head in (self._sealing.get(run), self._growing.get(run)) if head]
                if heads:
                    blocks[run] = [block for head in heads for block in head.blocks(selected)]
            return blocks

    def last_times(self, runs: Iterable[int]) -> dict[int, int]:
        """Return the time of the last row of the runs that have any."""
        with self._lock:
            return {
                run: max(head.t1 for head in heads)
                for run in runs
                if (heads := [head for head in (self._sealing.get(run), self._growing.get(run)) if head])
            }

    def runs(self) -> list[int]:
        """Return the runs with samples in memory."""
        with self._lock:
            return list(self._growing.keys() | self._sealing.keys())

    def growing(self) -> list[Head]:
        """Return the heads that can be detached. Resets `full`."""
        with self._lock:
            self.full = False
            return list(self._growing.values())

    def unsealed(self) -> list[Head]:
        """Return the heads that were detached and are not sealed yet, for example after a failure."""
        with self._lock:
            return list(self._sealing.values())

    def detach(self, run: int) -> Head | None:
        """Detach a run's head, to be sealed; or return the one detached before if it is not sealed yet.

        None if there is none.
        """
        with self._lock:
            if run not in self._sealing and run in self._growing:
                self._sealing[run] = self._growing.pop(run)
            return self._sealing.get(run)

    def release_sealed(self, runs: Iterable[int]) -> None:
        """Release detached heads: their samples are in chunks."""
        with self._lock:
            for run in runs:
                self._bytes -= self._sealing.pop(run).bytes
            self._memory_freed.notify_all()

    def drop(self, run: int) -> None:
        """Drop the heads of a run."""
        with self._lock:
            for heads in (self._growing, self._sealing):
                head = heads.pop(run, None)
                if head is not None:
                    self._bytes -= head.bytes
            self._memory_freed.notify_all()

    def oldest_seq(self) -> int | None:
        """Return the oldest row of the log that a head still needs."""
        with self._lock:
            heads = (*self._growing.values(), *self._sealing.values())
            return min((head.first_seq for head in heads), default=None)

    def wait_for_room(self, max_bytes: int, timeout_s: float) -> bool:
        """Wait until the heads take at most `max_bytes`; False if they do not within `timeout_s`."""
        with self._lock:
            return self._memory_freed.wait_for(lambda: self._bytes <= max_bytes, timeout_s)

    @property
    def bytes(self) -> int:
        """The bytes of the samples in memory."""
        return self._bytes

    @property
    def samples(self) -> int:
        """The number of samples in memory."""
        with self._lock:
            return sum(head.samples for head in (*self._growing.values(), *self._sealing.values()))
