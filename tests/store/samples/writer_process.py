"""A store in a process that a test may kill: `python -m tests.store.samples.writer_process FOLDER RUNS`.

One thread per run appends as fast as it can. Every acknowledged batch is printed to stdout: "run seq".
"""

from __future__ import annotations

import os
import sys
import threading

import numpy as np

from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from tests.store.samples.conformance import DAY, T0

TICKS = 5
METRICS = (1, 2, 3)
SETTINGS = StoreSettings(
    chunk_ticks=100, pack_ticks=30, compact_ticks=250, head_bytes=200_000, log_bytes=60_000, quiet_s=0.2
)


def batch(run: int, seq: int) -> SampleBatch:
    """Batch `seq` of writer `run`: its values identify run, tick and metric. 1,000 batches span a week."""
    ticks = np.arange(seq * TICKS, (seq + 1) * TICKS, dtype=np.int64)
    t = T0 + 27 * DAY + ticks * (7 * DAY // (1000 * TICKS))
    values = ticks[:, None] * 10.0 + np.array(METRICS) + run * 1e6
    return SampleBatch(run, run, seq, METRICS, t, values)


def main(folder: str, runs: int) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        os.write(1, b"open\n")
        for run in range(runs):
            threading.Thread(target=_append, args=(store, run), daemon=True).start()
        sys.stdin.read()  # until it is killed, or the test closes the pipe


def _append(store: SqliteChunks, run: int) -> None:
    stored = store.read([run], [1], 0, T0 * 2).series
    seq = len(stored[0].t) // TICKS if stored else 0
    while True:
        store.append([batch(run, seq)])
        os.write(1, f"{run} {seq}\n".encode())
        seq += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
