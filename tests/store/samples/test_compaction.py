"""A failed compaction does not block others, is logged once, and retried later."""

from __future__ import annotations

import logging
import os
import sqlite3

import numpy as np
import pytest

from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.compaction import Compactor
from runvitals.store.samples.sqlite.inventory import inventory
from runvitals.store.samples.sqlite.month_files import MonthFiles
from tests.store.samples.conformance import DAY, T0, batch

SMALL = StoreSettings(chunk_ticks=100, pack_ticks=20, compact_ticks=250)


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def chunks_of(folder: str, month: str) -> dict[int, int]:
    """The chunks of each run in a month."""
    connection = sqlite3.connect(os.path.join(folder, f"samples-{month}.db"))
    counts = dict(connection.execute("SELECT run, count(*) FROM chunk GROUP BY run").fetchall())
    connection.close()
    return counts


def test_a_run_whose_compaction_fails_does_not_block_others(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteChunks(folder, SMALL, clock_ms=lambda: T0) as store:
        for seq in range(2):
            for run in (1, 2, 3):
                t = range(seq * 100, seq * 100 + 100)
                store.append([batch(seq, t, np.ones(100), run=run)])
                store.append([batch(seq + 10, [t_ms + 31 * DAY for t_ms in t], np.ones(100), run=run)])
            store.flush()
    first = os.path.join(folder, inventory(folder)[1].path)
    connection = sqlite3.connect(first)
    connection.execute(
        "CREATE TRIGGER broken BEFORE DELETE ON chunk WHEN old.run = 1 "
        "BEGIN SELECT raise(ABORT, 'broken'); END"
    )
    connection.commit()
    connection.close()

    clock, months = Clock(), MonthFiles(folder)
    compactor = Compactor(months, SMALL, lambda: T0 + DAY, clock)
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            compactor.step()
    assert chunks_of(folder, "2026-10") == {1: 2, 2: 1, 3: 1}
    assert chunks_of(folder, "2026-11") == {1: 1, 2: 1, 3: 1}
    for _ in range(20):  # hours later: retried, but not logged again
        clock.now_s += 1800
        compactor.step()
    assert [record.getMessage() for record in caplog.records] == [
        f"could not compact {first}, run 1, will retry: {first}: broken"
    ]
    connection = sqlite3.connect(first)
    connection.execute("DROP TRIGGER broken")
    connection.close()
    clock.now_s += 6 * 3600
    compactor.step()
    assert chunks_of(folder, "2026-10") == {1: 1, 2: 1, 3: 1}
    months.close()
