"""Benchmark of fleets: what storing and querying costs in each store, and servers that are killed.

    python -m benchmarks.fleet                                  # 1,000 hosts for 100 s, a few minutes
    python -m benchmarks.fleet --hosts 10000 --ticks 30 --only stores
    python -m benchmarks.fleet --only failover --seconds 600    # one server is killed every minute

Samples are those of this machine, spread over the hosts as in `benchmarks.store`. ClickHouse is chDB, if it
is installed, and Debian's old version otherwise; for servers that are killed it is Debian's.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from benchmarks.fleet import failover, stores
from benchmarks.store import capture
from benchmarks.store.dataset import Fleet

TITLES = {"embedded": "embedded store", "clickhouse": "ClickHouse", "victoria": "VictoriaMetrics"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000, help="default: 1,000")
    parser.add_argument("--ticks", type=int, default=100, help="samples of each host; default: 100")
    parser.add_argument("--seconds", type=float, default=120, help="of sending to servers; default: 120")
    parser.add_argument("--kill-every", type=float, default=60, help="seconds; default: 60")
    parser.add_argument("--only", choices=["stores", "failover"], help="measure only this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "failover":
            print(_stores(options.hosts, options.ticks, folder))
        if options.only != "stores":
            print("\n".join(failover.measure(options.hosts, options.seconds, options.kill_every, folder)))


def _stores(hosts: int, ticks: int, folder: str) -> str:
    path = os.path.join(folder, "capture.npz")
    capture.capture(15).save(path)
    values = stores.HostValues(Fleet(capture.load(path), max(ticks, 1000)))
    results = {name: getattr(stores, name)(values, hosts, ticks, folder) for name in TITLES}
    rows = list(dict.fromkeys(row for numbers in results.values() for row in numbers))
    lines = [f"{hosts:,} hosts × 60 metrics × {ticks} ticks at 1 Hz\n"]
    lines += ["| | " + " | ".join(TITLES.values()) + " |", "|---" * (len(TITLES) + 1) + "|"]
    for row in rows:
        cells = (f"{numbers[row]:.3g}" if row in numbers else "" for numbers in results.values())
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
