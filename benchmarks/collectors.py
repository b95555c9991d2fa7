"""What the collectors cost: CPU time per sample, in µs, of each and of all together.

    python benchmarks/collectors.py                     # every collector: in a hot loop, and at 1 Hz
    python benchmarks/collectors.py --children 0 10 100 1000

A hot loop finds the processor's caches warm and shows what the code costs. At 1 Hz they are cold, as they are
in a monitor, and the same work takes two to three times as long: that is what a user pays.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from statistics import median
from typing import TYPE_CHECKING

from runvitals.collectors.base import Scope, Tick
from runvitals.collectors.sources import probe_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runvitals.collectors.base import Collector

BATCH = 50
HOT_BATCHES = 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--children", type=int, nargs="+", default=[0], help="processes besides the root")
    parser.add_argument("--seconds", type=int, default=10, help="how long to sample at 1 Hz")
    options = parser.parse_args()
    for count in options.children:
        with_children(count, options.seconds)


def with_children(count: int, seconds: int) -> None:
    """Measure with a tree of this process and so many sleeping children."""
    children = [subprocess.Popen(["sleep", "3600"]) for _ in range(count)]
    try:
        scope = Scope(pids=[os.getpid()])
        # Probed anew for each measurement, so that what is read every 10 s is read in each of them.
        hot = {collector.name: hot_cost(collector) for collector in probe_all(scope).collectors}
        cold, values = cold_costs(scope, seconds)
        print(f"\n{count} children, {values} values: µs of CPU per sample")
        print(f"  {'':12}{'hot':>9}{'1 Hz':>9}")
        for name, cost in hot.items():
            print(f"  {name:12}{cost:9.1f}{cold[name]:9.1f}")
        print(f"  {'together':12}{sum(hot.values()):9.1f}{cold['together']:9.1f}")
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def hot_cost(collector: Collector) -> float:
    """µs of CPU per sample in a loop without pauses, in which the clock of the samples runs at 1 Hz.

    The median of batches, so that what else runs on the machine does not count.
    """
    second = time.monotonic()
    costs = []
    for _ in range(HOT_BATCHES):
        before = time.process_time_ns()
        for _ in range(BATCH):
            collector.sample(Tick(second))
            second += 1.0
        costs.append((time.process_time_ns() - before) / BATCH / 1000)
    return median(costs)


def cold_costs(scope: Scope, seconds: int) -> tuple[dict[str, float], int]:
    """µs of CPU per sample at 1 Hz, in the mean: of each collector, and of all in a row, waking up included.

    They are two measurements, because looking at the clock before and after each collector costs as much as
    a collector. Also returns how many different values were read.
    """
    collectors = probe_all(scope).collectors
    costs = dict.fromkeys([collector.name for collector in collectors], 0.0)
    keys: set[str] = set()
    for tick in every_second(seconds):
        for collector in collectors:
            before = time.process_time_ns()
            collector.sample(tick)
            costs[collector.name] += (time.process_time_ns() - before) / 1000 / seconds
        keys.update(tick.gauges, tick.counters)
    collectors = probe_all(scope).collectors
    before = time.process_time_ns()
    for tick in every_second(seconds):
        for collector in collectors:
            collector.sample(tick)
    costs["together"] = (time.process_time_ns() - before) / 1000 / seconds
    return costs, len(keys)


def every_second(seconds: int) -> Iterator[Tick]:
    """So many ticks, a second apart, the first one after a second."""
    start = time.monotonic()
    for second in range(1, seconds + 1):
        time.sleep(max(0.0, start + second - time.monotonic()))
        yield Tick(time.monotonic())


if __name__ == "__main__":
    main()
