"""Fills a small file system with a store, then frees space: `python -m tests.store.samples.full_disk FOLDER`.

Prints its observations as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys

from runvitals.store.samples.interface import StoreUnavailable
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.check import check
from tests.store.samples.conformance import T0
from tests.store.samples.writer_process import SETTINGS, TICKS, batch


def main(folder: str) -> None:
    logging.disable()
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb") as file:
        file.write(bytes(1 << 20))
    acknowledged: list[int] = []
    rejected: list[str] = []
    seq = 0
    with SqliteChunks(os.path.join(folder, "store"), SETTINGS) as store:
        while len(rejected) < 3:
            seq += 1
            try:
                store.append([batch(1, seq)])
                acknowledged.append(seq)
            except StoreUnavailable as error:
                rejected.append(str(error))
        readable_while_full = _batches(store)
        problem_while_full = store.stats().problem
        os.unlink(ballast)
        for _ in range(50):
            seq += 1
            store.append([batch(1, seq)])
            acknowledged.append(seq)
        store.flush()
        observed = {
            "rejected": rejected,
            "readable_while_full": readable_while_full,
            "problems_reported": [problem_while_full, store.stats().problem],
            "acknowledged": acknowledged,
            "readable": _batches(store),
            "unsealed": store.stats().unsealed_samples,
        }
    observed["problems"] = [str(problem) for problem in check(os.path.join(folder, "store"))]
    with SqliteChunks(os.path.join(folder, "store"), SETTINGS) as store:
        observed["reopened"] = _batches(store)
    print(json.dumps(observed))


def _batches(store: SqliteChunks) -> list[int]:
    """The sequence numbers of the batches that are complete."""
    (series,) = store.read([1], [1], 0, T0 * 2).series
    ticks = ((series.values - 1e6 - 1) / 10).astype(int).reshape(-1, TICKS)
    return [int(batch_ticks[0]) // TICKS for batch_ticks in ticks]


if __name__ == "__main__":
    main(sys.argv[1])
