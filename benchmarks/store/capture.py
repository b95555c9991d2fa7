"""Captures real samples of this machine, with runvitals' collectors and a bursty workload.

python -m benchmarks.store.capture --seconds 240 --into /tmp/capture.npz
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.sources import probe_all

# Bursts of arithmetic, memory and file access with pauses in between, like training steps and data loading.
WORKLOAD = """
import os, random, tempfile, time
import numpy as np
rng = random.Random(1)
with tempfile.TemporaryFile() as file:
    while True:
        block = np.random.default_rng(1).normal(size=(rng.randint(50, 700), 700))
        until = time.monotonic() + rng.random() * 0.6
        while time.monotonic() < until:
            block = np.tanh(block @ block.T[:, :700] if block.shape[0] == 700 else block * 1.01)
        file.seek(0)
        file.write(os.urandom(rng.randint(1, 2_000_000)))
        file.flush()
        time.sleep(rng.random() * 1.5)
"""


@dataclass(frozen=True)
class Capture:
    """Captured samples.

    Args:
        keys: keys of the columns.
        counter: for each column, whether it is a counter.
        values: of shape (samples, keys); NaN if a key was absent.
    """

    keys: list[str]
    counter: NDArray[np.bool_]
    values: NDArray[np.float64]

    def save(self, path: str) -> None:
        np.savez_compressed(path, keys=np.array(self.keys), counter=self.counter, values=self.values)


def load(path: str) -> Capture:
    with np.load(path) as file:
        return Capture([str(key) for key in file["keys"]], file["counter"], file["values"])


def capture(seconds: float, interval_s: float = 0.1) -> Capture:
    """Sample this machine and a workload on it."""
    workload = subprocess.Popen([sys.executable, "-c", WORKLOAD])
    try:
        return _sample(workload.pid, seconds, interval_s)
    finally:
        workload.kill()
        workload.wait()


def _sample(pid: int, seconds: float, interval_s: float) -> Capture:
    collectors = probe_all(Scope(pids=[os.getpid(), pid], interval_s=interval_s)).collectors
    ticks: list[dict[str, float]] = []
    counters: set[str] = set()
    start = time.monotonic()
    for number in range(int(seconds / interval_s)):
        time.sleep(max(0.0, start + number * interval_s - time.monotonic()))
        tick = Tick(time.monotonic())
        for collector in collectors:
            collector.sample(tick)
        counters.update(tick.counters)
        ticks.append({**tick.gauges, **tick.counters})
    keys = sorted(set().union(*ticks[1:]))
    values = np.array([[tick.get(key, np.nan) for key in keys] for tick in ticks[1:]])
    return Capture(keys, np.array([key in counters for key in keys]), values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--into", required=True, metavar="FILE.npz")
    options = parser.parse_args()
    captured = capture(options.seconds)
    captured.save(options.into)
    print(f"{captured.values.shape[0]} samples of {len(captured.keys)} keys in {options.into}")


if __name__ == "__main__":
    main()
