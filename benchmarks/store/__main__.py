"""Benchmark of the sample store and others, with samples of this machine.

    python -m benchmarks.store                          # a few minutes
    python -m benchmarks.store --runs 100 --only chunks # 60 million points

Each store is measured in a separate process, with the same data.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from benchmarks.store import capture, chunks, rows, victoria
from benchmarks.store.dataset import Fleet
from benchmarks.store.measure import Numbers

STORES = {"chunks": chunks.measure, "rows": rows.measure, "victoria": victoria.measure}
TITLES = {"chunks": "runvitals", "rows": "SQLite rows", "victoria": "VictoriaMetrics"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=20, help="number of runs with 60 metrics each (default: 20)"
    )
    parser.add_argument("--ticks", type=int, default=10_000, help="ticks per run (default: 10,000)")
    parser.add_argument("--capture", metavar="FILE.npz", help="use samples captured earlier")
    parser.add_argument(
        "--seconds", type=float, default=60, help="otherwise: how long to capture samples now"
    )
    parser.add_argument("--only", choices=STORES, action="append", help="measure only this store")
    parser.add_argument("--in", dest="folder", metavar="FOLDER", help="a folder on the disk to be measured")
    parser.add_argument("--part", choices=STORES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        fleet = Fleet(capture.load(options.capture), options.ticks)
        print(json.dumps(STORES[options.part](fleet, options.runs, options.folder)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.capture is None:
            options.capture = os.path.join(folder, "capture.npz")
            capture.capture(options.seconds).save(options.capture)
        print(f"{options.runs} runs × {options.ticks:,} ticks × 60 metrics; load {os.getloadavg()}\n")
        results = {store: _part(store, options, folder) for store in options.only or STORES}
    print(_table(results))


def _part(store: str, options: argparse.Namespace, folder: str) -> Numbers:
    """Measure a store in a separate process."""
    part_folder = os.path.join(folder, store)
    os.makedirs(part_folder)
    command = [sys.executable, "-m", "benchmarks.store", "--part", store, "--capture", options.capture]
    command += ["--runs", str(options.runs), "--ticks", str(options.ticks), "--in", part_folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    numbers: Numbers = json.loads(done.stdout)
    return numbers


def _table(results: dict[str, Numbers]) -> str:
    """Markdown: a row for each figure, a column for each store."""
    names = list(dict.fromkeys(name for numbers in results.values() for name in numbers))
    stores = [store for store in results if results[store]]
    lines = [f"| | {' | '.join(TITLES[store] for store in stores)} |", "|---" * (len(stores) + 1) + "|"]
    for name in names:
        values = (results[store].get(name) for store in stores)
        lines.append(f"| {name} | {' | '.join('' if v is None else _number(v) for v in values)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
