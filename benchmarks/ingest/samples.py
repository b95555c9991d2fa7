"""The samples that the clients send."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model.durations import DAY_MS

KEYS = [f"metric.{number}" for number in range(60)]
_WALKS = 20
_START_BEFORE_MS = 10 * DAY_MS
"""A fast client sends a day of ticks in a few seconds; the server rejects those more than a day ahead."""


def samples(client: int, ticks: int) -> Iterator[tuple[Integers, Floats]]:
    """Times and values (ticks × KEYS) of a client's requests: random walks in steps of 0.1, like gauges."""
    rng = np.random.default_rng(client)
    steps = rng.integers(-10, 11, (_WALKS * ticks, len(KEYS)))
    walks = (np.cumsum(steps, axis=0) / 10).reshape(_WALKS, ticks, len(KEYS))
    t = time.time_ns() // 1_000_000 - _START_BEFORE_MS + 1000 * np.arange(ticks, dtype=np.int64)
    number = 0
    while True:
        yield t + 1000 * ticks * number, walks[number % _WALKS]
        number += 1
