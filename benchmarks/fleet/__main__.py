"""Benchmark of fleets: what storing and querying costs in each store, and servers that are killed.

    python -m benchmarks.fleet                                  # 1,000 hosts for 100 s, a few minutes
    python -m benchmarks.fleet --hosts 10000 --ticks 30 --only stores
    python -m benchmarks.fleet --only month                     # a chart of 30 days
    python -m benchmarks.fleet --only cold                      # old samples in a bucket
    python -m benchmarks.fleet --only failover --seconds 600    # one server is killed every minute
    python -m benchmarks.fleet --only faults                    # three servers of deploy/compose, parts fail
    python -m benchmarks.fleet --only faults --before OLD/src   # they are upgraded meanwhile

Samples are those of this machine, spread over the hosts as in `benchmarks.store`. ClickHouse is chDB, if it
is installed, and Debian's old version otherwise; for servers that are killed it is Debian's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.fleet import cold, failover, faults, month, stores
from benchmarks.store import capture
from benchmarks.store.dataset import Fleet
from benchmarks.store.measure import Numbers

TITLES = {"embedded": "embedded store", "clickhouse": "ClickHouse", "victoria": "VictoriaMetrics"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000, help="default: 1,000")
    parser.add_argument("--ticks", type=int, default=100, help="samples of each host; default: 100")
    parser.add_argument("--seconds", type=float, default=120, help="of sending to servers; default: 120")
    parser.add_argument("--kill-every", type=float, default=60, help="seconds; default: 60")
    parser.add_argument("--days", type=int, default=30, help="of the chart of a month; default: 30")
    parser.add_argument(
        "--only", choices=["stores", "month", "cold", "failover", "faults"], help="measure only this"
    )
    parser.add_argument(
        "--before", type=Path, help="`src` of an earlier version, from which servers are upgraded"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only in (None, "stores"):
            print(_stores(options.hosts, options.ticks, folder))
        if options.only in (None, "month"):
            print(_month(options.days, folder))
        if options.only in (None, "cold"):
            print(_cold(folder))
        if options.only in (None, "failover"):
            print("\n".join(failover.measure(options.hosts, options.seconds, options.kill_every, folder)))
        if options.only == "faults":
            for line in faults.measure(Path(folder), options.before):
                print(line, flush=True)


def _stores(hosts: int, ticks: int, folder: str) -> str:
    values = stores.HostValues(_fleet(max(ticks, 1000), folder))
    results = {name: getattr(stores, name)(values, hosts, ticks, folder) for name in TITLES}
    return f"{hosts:,} hosts × 60 metrics × {ticks} ticks at 1 Hz\n\n{_table(results)}\n"


def _month(days: int, folder: str) -> str:
    fleet = _fleet(86_400, folder)
    results = {"embedded": month.embedded(fleet, days, folder)}
    results["clickhouse"] = month.clickhouse(fleet, days, folder)
    return f"A run at 1 Hz for {days} days\n\n{_table(results)}\n"


def _cold(folder: str) -> str:
    numbers = cold.measure(_fleet(10_000, folder), folder)
    return f"Ten hosts at 1 Hz, moved to cold storage\n\n{_table({'embedded': numbers})}\n"


def _fleet(ticks: int, folder: str) -> Fleet:
    path = os.path.join(folder, "capture.npz")
    if not os.path.exists(path):
        capture.capture(15).save(path)
    return Fleet(capture.load(path), ticks)


def _table(results: Mapping[str, Numbers]) -> str:
    rows = list(dict.fromkeys(row for numbers in results.values() for row in numbers))
    titles = [TITLES[name] for name in results]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for row in rows:
        cells = (f"{numbers[row]:.3g}" if row in numbers else "" for numbers in results.values())
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
