"""The times of rows: one for each timestamp and step, the same whenever a row is sent again."""

from __future__ import annotations

import numpy as np
import pytest

from runvitals.base.buckets import Integers
from runvitals.server.doors.mlflow import row_times
from runvitals.server.doors.mlflow.row_times import RowTimes, StoredRows

T0 = 1_760_000_000_000
ACCEPTED = (946_684_800_000, T0 + 86_400_000)
Row = tuple[int, int]


def columns(rows: list[Row], repeat: int = 0) -> tuple[Integers, Integers, Integers]:
    """Timestamps, steps and repeats."""
    array: Integers = np.array(rows, np.int64)
    return array[:, 0], array[:, 1], np.full(len(rows), repeat)


class Rows:
    """A store of rows."""

    def __init__(self) -> None:
        self.stored: dict[int, Row] = {}
        self.reads = 0

    def read(self, t0_ms: int, t1_ms: int) -> StoredRows:
        self.reads += 1
        times = sorted(t for t in self.stored if t0_ms <= t <= t1_ms)
        timestamps, steps = ([float(self.stored[t][number]) for t in times] for number in (0, 1))
        return StoredRows(np.array(times, np.int64), np.array(timestamps), np.array(steps))

    def times(self) -> RowTimes:
        return RowTimes(self.read, max(self.stored, default=-1), T0)

    def store(self, times: RowTimes, rows: list[Row], repeat: int = 0) -> list[int]:
        stored: list[int] = times.assign(*columns(rows, repeat), *ACCEPTED).tolist()
        for t, row in zip(stored, rows, strict=True):
            assert self.stored.setdefault(t, row) == row
        return stored


def test_one_time_for_each_row() -> None:
    rows = Rows()
    times = rows.times()
    assert rows.store(times, [(T0, 1), (T0, 0), (T0 + 5, 2)]) == [T0, T0 + 1, T0 + 5]
    assert rows.store(times, [(T0, 0), (T0 + 1, 9)]) == [T0 + 1, T0 + 2]
    assert rows.store(times, [(T0 + 9, 3), (T0 + 9, 4), (T0 + 10, 5)]) == [T0 + 9, T0 + 10, T0 + 11]
    assert rows.store(times, [(T0 + 9, 4), (T0 + 11, 6)]) == [T0 + 10, T0 + 12]
    assert rows.reads == 0


def test_timestamps_that_are_not_accepted() -> None:
    rows = Rows()
    times = rows.times()
    assert rows.store(times, [(0, 0), (1, 1), (-9, 2), (2**50, 3)]) == [T0, T0 + 1, T0 + 2, T0 + 3]
    assert rows.store(times, [(1, 1)]) == [T0 + 1]


def test_after_a_restart() -> None:
    rows = Rows()
    sent = [(T0, step) for step in range(100)]
    before = rows.store(rows.times(), sent)
    times = rows.times()
    assert times.follows(np.array([T0 + 1000]), *ACCEPTED)
    assert not times.follows(np.array([T0 + 1000, T0]), *ACCEPTED)
    assert rows.store(times, sent) == before
    assert rows.store(times, [(T0, 100), (T0 + 50, 0)]) == [T0 + 100, T0 + 101]
    assert rows.reads == 1


def test_rows_with_the_same_timestamp_and_step() -> None:
    rows = Rows()
    times = rows.times()
    assert rows.store(times, [(T0, 7), (T0 + 1, 8)]) == [T0, T0 + 1]
    assert rows.store(times, [(T0, 7)], repeat=1) == [T0 + 2]
    assert times.times_of(T0, 7, *ACCEPTED) == [T0, T0 + 2]
    times = rows.times()
    assert times.times_of(T0, 7, *ACCEPTED) == [T0, T0 + 2]
    assert rows.store(times, [(T0, 7)], repeat=2) == [T0 + 3]
    assert rows.store(times, [(T0, 7)], repeat=1) == [T0 + 2]
    assert times.times_of(T0, 7, *ACCEPTED) == [T0, T0 + 2, T0 + 3]
    assert times.times_of(T0, 9, *ACCEPTED) == []


@pytest.mark.parametrize("a_ms", [1, 3], ids=["one a ms", "three a ms"])
def test_more_rows_than_are_remembered(a_ms: int) -> None:
    rows = Rows()
    times = rows.times()
    sent = [(T0 + step // a_ms, step) for step in range(row_times.KEPT + 3000)]
    before = [t for start in range(0, len(sent), 1000) for t in rows.store(times, sent[start : start + 1000])]
    assert len(set(before)) == len(sent)
    assert rows.store(times, sent[:1000]) == before[:1000]
    assert rows.store(times, sent[-1000:]) == before[-1000:]
