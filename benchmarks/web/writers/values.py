"""What each run logs, the same for every tracker. Only the standard library: their own Pythons import it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

PROJECT = "bench"
METRICS = ("train/loss", "val/loss", "train/acc", "val/acc", "lr", "grad_norm", "perf/tokens", "epoch")
STEPS = 200


def config_of(run: int) -> dict[str, float]:
    """The configuration of a run."""
    return {"lr": 10 ** -(2 + run % 4), "batch_size": 2 ** (4 + run % 5), "seed": run}


def rows_of(run: int) -> Iterator[dict[str, float]]:
    """The values of each step of a run."""
    noise = random.Random(run)
    for step in range(STEPS):
        falling = math.exp(-step / (20 + run % 30))
        yield {name: place + falling * (1 + noise.random() / 10) for place, name in enumerate(METRICS)}
