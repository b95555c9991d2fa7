"""Cost of alert rules: a thousand rules on a thousand hosts that send a sample a second.

Usage: scripts/bench alerts [--hosts N] [--rules N] [--seconds N]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from runvitals.server.alerts.rules import AlertRule, rule
from runvitals.server.alerts.watched_series import WatchedHost, WatchedSeries
from runvitals.store.samples.interface import SampleBatch

T0 = 1_800_000_000_000
METRICS = ("gpu.0.gpu", "gpu.0.temp", "gpu.0.powerWatts", "gpu.0.memoryAllocated", "cpu", "memory_percent")
OTHERS = 60
"""Further metrics of each sample, which no rule is about."""
STATISTICS = (("last", 0), ("mean", 60), ("max", 300), ("mean", 900))


def rules(number: int) -> tuple[AlertRule, ...]:
    """Rules with different metrics, windows and thresholds; the values cross some of them."""
    rows = []
    for index in range(number):
        statistic, window = STATISTICS[index // len(METRICS) % len(STATISTICS)]
        condition = {
            "kind": "threshold",
            "metric": METRICS[index % len(METRICS)],
            "statistic": statistic,
            "window": window,
            "operator": ">",
            "value": 40 + index * 60 / number,
            "clear": 35 + index * 60 / number,
        }
        rows.append(rule({"name": f"rule {index}", "for": index % 4 * 30, "condition": condition}, index + 1))
    return tuple(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=120)
    arguments = parser.parse_args()
    stored_rules = rules(arguments.rules)
    keys = [*METRICS, *(f"other.{number}" for number in range(OTHERS))]
    ids = tuple(range(1, len(keys) + 1))
    metrics = dict(zip(ids, keys, strict=True))
    hosts = [
        WatchedHost(lane, lane, f"node{lane}", "monitor", stored_rules, metrics)
        for lane in range(1, arguments.hosts + 1)
    ]
    started_s = time.process_time()
    series = WatchedSeries(hosts)
    built_s = time.process_time() - started_s
    random = np.random.default_rng(7)
    level = random.uniform(10, 60, (arguments.hosts, len(keys)))
    used_s, transitions = 0.0, 0
    for second in range(arguments.seconds):
        level = np.clip(level + random.normal(0, 0.5, level.shape), 0, 100)
        t = np.array([T0 + second * 1000], np.int64)
        batches = [
            SampleBatch(host.lane_id, host.lane_id, second, ids, t, level[row : row + 1])
            for row, host in enumerate(hosts)
        ]
        started_s = time.process_time()
        for values in series.rounds(batches, 0):
            transitions += len(series.add(values))
        used_s += time.process_time() - started_s
    per_second = used_s / arguments.seconds
    size = len(series.evaluation.slots)
    print(f"{arguments.rules:,} rules × {arguments.hosts:,} hosts at 1 Hz, {size:,} slots")
    print(f"built once in {built_s:.2f} s")
    print(f"{per_second * 1000:.1f} ms of CPU a second: {per_second * 100:.2f} % of a core")
    print(f"{transitions / arguments.seconds:.1f} transitions a second")


if __name__ == "__main__":
    main()
