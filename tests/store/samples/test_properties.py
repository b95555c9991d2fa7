"""After random writes the SQLite store returns what the model does: unsealed, sealed, compacted, reopened."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.store.samples.cold.storage import ColdSettings
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.check import check
from tests.store.samples.comparison import assert_equal
from tests.store.samples.conformance import DAY, T0
from tests.store.samples.model import Model

TINY = StoreSettings(chunk_ticks=10, pack_ticks=4, compact_ticks=25, head_bytes=1 << 20, log_bytes=1 << 20)
PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF))[0]
VALUES = np.array([0.0, -0.0, 1.5, -3.25, 1e3, 0.1, np.nan, PAYLOAD, np.inf, -np.inf, 5e-324, 7.0, 7.0, 7.0])
COLUMNS = [(0, 1, 2), (1, 3), (2,), (0, 1, 2, 3), (3, 0)]
# Around the start of a month, of the next day, and of the next month.
STARTS = (T0 - 40, T0 + DAY - 30, T0 + DAY + 60, T0 + 31 * DAY - 50, T0 + 400 * DAY)
RANGES = [
    (0, T0 + 500 * DAY),
    (T0 - 20, T0 + DAY + 80),
    (T0 + DAY, T0 + 2 * DAY - 1),
    (T0 + 31 * DAY - 35, T0 + 31 * DAY + 35),
]
RUNS = range(3)


@dataclass(frozen=True)
class Append:
    run: int
    writer: int
    columns: tuple[int, ...]
    start: int
    ticks: int
    step: int
    backwards: bool
    seed: int

    def batch(self, seq: int) -> SampleBatch:
        rng = np.random.default_rng(self.seed)
        t = self.start + np.arange(self.ticks, dtype=np.int64) * self.step
        values = rng.choice(VALUES, (self.ticks, len(self.columns)))
        return SampleBatch(self.run, self.writer, seq, self.columns, t[::-1] if self.backwards else t, values)


@dataclass(frozen=True)
class Repeat:
    """A batch that was sent before."""

    index: int


Operation = Literal["flush", "compact", "reopen"]

APPENDS = st.builds(
    Append,
    run=st.sampled_from(RUNS),
    writer=st.integers(0, 1),
    columns=st.sampled_from(COLUMNS),
    start=st.builds(int.__add__, st.sampled_from(STARTS), st.integers(0, 40)),
    ticks=st.integers(0, 30),
    step=st.sampled_from([0, 1, 2, 3, DAY // 8]),
    backwards=st.booleans(),
    seed=st.integers(0, 1000),
)
DELETES = st.sampled_from(RUNS)
STEPS: st.SearchStrategy[list[Append | Repeat | Operation | int]] = st.lists(
    st.one_of(
        APPENDS,
        APPENDS,
        APPENDS,
        st.builds(Repeat, st.integers(0, 100)),
        st.sampled_from(["flush", "compact", "reopen"]),
        DELETES,
    ),
    min_size=1,
    max_size=14,
)


class StoreAndModel:
    """A store in a folder, and a model that gets the same writes."""

    def __init__(self, folder: str, cold: str | None = None) -> None:
        self.folder = folder
        self._cold = ColdSettings(cold, after_ms=DAY, object_bytes=200) if cold else None
        self.store = self.open()
        self.model = Model()
        self.sent: list[SampleBatch] = []

    def open(self) -> SqliteChunks:
        return SqliteChunks(self.folder, TINY, lambda: T0 + 500 * DAY, self._cold)

    def do(self, step: Append | Repeat | Operation | int) -> None:
        if isinstance(step, Append):
            self.send(step.batch(len(self.sent)))
        elif isinstance(step, Repeat):
            if self.sent:
                self.send(self.sent[step.index % len(self.sent)])
        elif isinstance(step, int):
            self.store.delete([step])
            self.model.delete([step])
        elif step == "flush":
            self.store.flush()
        elif step == "compact":
            self.store.compact()
            self.store.move_to_cold_storage()
        else:
            self.store.close()
            self.store = self.open()

    def send(self, batch: SampleBatch) -> None:
        self.sent.append(batch)
        assert self.store.append([batch]) == self.model.append([batch])

    def compare(self) -> None:
        assert_equal(self.store, self.model, RUNS, RANGES)


@settings(max_examples=60)
@given(STEPS)
def test_the_store_returns_the_same_as_the_model(steps: Sequence[Append | Repeat | Operation | int]) -> None:
    compare(steps, is_cold=False)


@settings(max_examples=40)
@given(STEPS)
def test_so_does_a_store_with_cold_storage(steps: Sequence[Append | Repeat | Operation | int]) -> None:
    compare(steps, is_cold=True)


def compare(steps: Sequence[Append | Repeat | Operation | int], is_cold: bool) -> None:
    """Do the same to a store and the model, and compare them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as parent:
        folder, bucket = os.path.join(parent, "store"), os.path.join(parent, "bucket")
        os.mkdir(bucket)
        both = StoreAndModel(folder, bucket if is_cold else None)
        try:
            for step in steps:
                both.do(step)
            both.compare()
            both.store.flush()
            both.compare()
            both.do("compact")
            both.compare()
            both.do("reopen")
            both.compare()
            assert list(check(folder, reads_cold=True)) == []
        finally:
            both.store.close()


def test_ten_thousand_short_runs(folder: str) -> None:
    rng = np.random.default_rng(1)
    model = Model()
    with SqliteChunks(folder) as store:
        for first in range(0, 10_000, 100):
            batches = [
                SampleBatch(run, 1, 0, (1, 2), T0 + run * 1000 + np.arange(2) * 1000, rng.normal(size=(2, 2)))
                for run in range(first, first + 100)
            ]
            store.append(batches)
            model.append(batches)
        runs = range(10_000)
        for _ in ("fresh", "sealed"):
            assert len(store.latest(runs)) == 10_000
            assert store.active_runs(T0 + 9_990_000) == model.active_runs(T0 + 9_990_000)
            mine = store.aggregate(2, runs, T0 + 5_000_000, T0 + 9_000_000, 60_000).series[0]
            models = model.aggregate(2, runs, T0 + 5_000_000, T0 + 9_000_000, 60_000).series[0]
            assert mine.n.tolist() == models.n.tolist()
            assert mine.mean == pytest.approx(models.mean)
            some = [3, 5000, 9999]
            assert [s.values.tolist() for s in store.read(some, None, 0, T0 * 2).series] == [
                s.values.tolist() for s in model.read(some, None, 0, T0 * 2).series
            ]
            store.flush()
