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
from typing import TYPE_CHECKING

from runvitals.collectors.base import Scope, Tick
from runvitals.collectors.sources import probe_all

if TYPE_CHECKING:
    from runvitals.collectors.base import Collector

HOT_LOOPS = 1000


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
        collectors = probe_all(Scope(pids=[os.getpid()])).collectors
        values = len(sample_all(collectors))
        time.sleep(1.0)
        values = max(values, len(sample_all(collectors)))
        print(f"\n{count} children, {values} values: µs of CPU per sample")
        print(f"  {'':12}{'hot':>9}{'1 Hz':>9}")
        hot = {collector.name: hot_cost(collector) for collector in collectors}
        cold = cold_costs(collectors, seconds)
        for name, cost in hot.items():
            print(f"  {name:12}{cost:9.1f}{cold[name]:9.1f}")
        print(f"  {'together':12}{sum(hot.values()):9.1f}{cold['together']:9.1f}")
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def sample_all(collectors: list[Collector]) -> dict[str, float]:
    """One sample of all collectors: key -> value."""
    tick = Tick(time.monotonic())
    for collector in collectors:
        collector.sample(tick)
    return {**tick.gauges, **tick.counters}


def hot_cost(collector: Collector) -> float:
    """µs of CPU per sample in a loop without pauses, in which the clock of the samples runs at 1 Hz."""
    clock = time.monotonic()
    before = time.process_time_ns()
    for second in range(HOT_LOOPS):
        collector.sample(Tick(clock + second))
    return (time.process_time_ns() - before) / HOT_LOOPS / 1000


def cold_costs(collectors: list[Collector], seconds: int) -> dict[str, float]:
    """µs of CPU per sample at 1 Hz: of each collector, and of one sample of them all, waking up included."""
    spent = dict.fromkeys([collector.name for collector in collectors], 0)
    start, woken = time.monotonic(), time.process_time_ns()
    for second in range(1, seconds + 1):
        time.sleep(max(0.0, start + second - time.monotonic()))
        tick = Tick(time.monotonic())
        for collector in collectors:
            before = time.process_time_ns()
            collector.sample(tick)
            spent[collector.name] += time.process_time_ns() - before
    costs = {name: total / seconds / 1000 for name, total in spent.items()}
    costs["together"] = (time.process_time_ns() - woken) / seconds / 1000
    return costs


if __name__ == "__main__":
    main()
