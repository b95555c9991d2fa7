"""The cost of the collectors: CPU time per sample in µs, of each one and of all together.

    python benchmarks/collectors.py                     # every collector: in a hot loop, and at 1 Hz
    python benchmarks/collectors.py --children 0 10 100 1000

In a hot loop the processor's caches are warm, so it shows the cost of the code. At 1 Hz they are cold, as in
a monitor, and the same work takes two to three times as long, which is the cost in practice.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from statistics import median
from typing import TYPE_CHECKING

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.sources import probe_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runvitals.monitoring.collectors.base import Collector

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
    """Measure with `count` sleeping children of this process."""
    children = [subprocess.Popen(["sleep", "3600"]) for _ in range(count)]
    try:
        scope = Scope(pids=[os.getpid()])
        # Probed again for each measurement, so that sources with an interval of 10 s are read in each.
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
    """µs of CPU per sample in a loop without pauses, with ticks that are 1 s apart.

    The median of several batches, to exclude the influence of other processes.
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
    """Mean CPU time per sample at 1 Hz in µs: of each collector, and of all together including the wake-up.

    These are separate measurements, because reading the clock before and after each collector costs as much
    as a collector. Also returns the number of different keys.
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
    """Ticks that are a second apart, the first one after a second."""
    start = time.monotonic()
    for second in range(1, seconds + 1):
        time.sleep(max(0.0, start + second - time.monotonic()))
        yield Tick(time.monotonic())


if __name__ == "__main__":
    main()
