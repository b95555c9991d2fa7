"""The cost of the journal: µs to write a sample, samples read per second, bytes per sample.

    python benchmarks/journal.py

The samples have 55 values that behave like a host's: a third are constant, a third are counters, a third are
percentages. Every figure is the best of several rounds, in CPU time of this process, to reduce the influence
of other work on the machine.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from array import array
from collections.abc import Callable
from functools import partial

from runvitals.journal.reader import read_run
from runvitals.journal.sealing import SegmentSealer
from runvitals.journal.writer import JournalWriter

ROUNDS = 7
SAMPLES = 50_000
A_WEEK = 7 * 24 * 3600  # samples at 1 Hz
VALUES = 55
COUNTERS = PERCENTAGES = 18


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = JournalWriter(folder, "monitor.bench.1", {"run": "bench"})
        readings = host_readings(SAMPLES // ROUNDS)
        written = len(readings) * ROUNDS
        write_s = best(lambda: write(journal, readings)) / len(readings)
        journal.close()
        print(f"write a sample of {len(readings[0])} values   {write_s * 1e6:8.1f} µs")
        raw = report_reading("raw", folder, written)
        sealed_s = 0.0
        for path in [*journal.rotated, journal.path]:
            sealed_s += best(partial(seal, path), rounds=1)
        print(f"seal a sample                  {sealed_s / written * 1e6:8.1f} µs")
        sealed = report_reading("sealed", folder, written)
        print(f"bytes a sample                 {raw:8.0f} raw, {sealed:.0f} sealed")


def host_readings(count: int) -> list[dict[str, float]]:
    """Samples of a busy host, with changing and constant values."""
    numbers = random.Random(55)
    keys = [f"source.{i}.metric" for i in range(VALUES)]
    counters = [float(numbers.randrange(10**9)) for _ in range(COUNTERS)]
    constants = [numbers.random() * 1e5 for _ in range(VALUES - COUNTERS - PERCENTAGES)]
    readings = []
    for _ in range(count):
        counters = [value + numbers.randrange(0, 100_000, 512) for value in counters]
        percentages = [numbers.randrange(101) / 1.01 for _ in range(PERCENTAGES)]
        readings.append(dict(zip(keys, [*percentages, *counters, *constants], strict=True)))
    return readings


def write(journal: JournalWriter, readings: list[dict[str, float]]) -> None:
    for time_ms, values in enumerate(readings):
        journal.sample(time_ms, values)


def seal(path: str) -> None:
    sealer = SegmentSealer(path)
    while sealer.step():
        pass


def report_reading(what: str, folder: str, count: int) -> float:
    """Print how fast the samples of a folder are read into columns; returns their bytes per sample."""
    read_s = best(lambda: read(folder)) / count
    print(f"read, {what:6}  {1 / read_s:12,.0f} samples/s, a week at 1 Hz in {A_WEEK * read_s:.2f} s")
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) / count


def read(folder: str) -> array[float]:
    rows = array("d")
    for record in read_run(folder):
        rows.frombytes(record.packed)
    return rows


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """CPU seconds of the fastest of several rounds."""
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
