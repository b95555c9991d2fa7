"""Compacting where something fails: it holds up nothing else, is told once, and tried again later."""

from __future__ import annotations

import logging
import os
import sqlite3

import numpy as np
import pytest

from runvitals.store.samples.sqlite_chunks import Settings, SqliteChunks
from runvitals.store.samples.sqlite_chunks.compaction import Compactor
from runvitals.store.samples.sqlite_chunks.inventory import inventory
from runvitals.store.samples.sqlite_chunks.month_files import Months
from tests.store.samples.conformance import DAY, T0, batch

SMALL = Settings(chunk_ticks=100, pack_ticks=20, compact_ticks=250)


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def chunks_of(folder: str, month: str) -> dict[int, int]:
    """The chunks of each run in a month."""
    connection = sqlite3.connect(os.path.join(folder, f"samples-{month}.db"))
    found = dict(connection.execute("SELECT run, count(*) FROM chunk GROUP BY run").fetchall())
    connection.close()
    return found


def test_a_run_that_cannot_be_compacted_holds_up_no_other(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteChunks(folder, SMALL, clock_ms=lambda: T0) as store:
        for seq in range(2):
            for run in (1, 2, 3):
                t = range(seq * 100, seq * 100 + 100)
                store.append([batch(seq, t, np.ones(100), run=run)])
                store.append([batch(seq + 10, [one + 31 * DAY for one in t], np.ones(100), run=run)])
            store.flush()
    first = os.path.join(folder, inventory(folder)[1].path)
    connection = sqlite3.connect(first)
    connection.execute(
        "CREATE TRIGGER broken BEFORE DELETE ON chunk WHEN old.run = 1 "
        "BEGIN SELECT raise(ABORT, 'broken'); END"
    )
    connection.commit()
    connection.close()

    clock, months = Clock(), Months(folder)
    compactor = Compactor(months, SMALL, lambda: T0 + DAY, clock)
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            compactor.step()
    assert chunks_of(folder, "2026-10") == {1: 2, 2: 1, 3: 1}
    assert chunks_of(folder, "2026-11") == {1: 1, 2: 1, 3: 1}
    for _ in range(20):  # hours later: tried now and then, and not told again
        clock.now_s += 1800
        compactor.step()
    assert [record.getMessage() for record in caplog.records] == [
        f"{first}, run 1 cannot be compacted at present: {first}: broken"
    ]
    connection = sqlite3.connect(first)
    connection.execute("DROP TRIGGER broken")
    connection.close()
    clock.now_s += 6 * 3600
    compactor.step()
    assert chunks_of(folder, "2026-10") == {1: 1, 2: 1, 3: 1}
    months.close()
