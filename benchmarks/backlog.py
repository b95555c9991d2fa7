"""The cost of a backlog: `runvitals sync` delivers a run that was recorded while no server could be reached.

    python -m benchmarks.backlog                # a week of 60 values every 10 s
    python -m benchmarks.backlog --seconds 3600 --every 1

A real server runs beside it, on loopback. CPU and memory are those of the process that delivers, from start
to exit, minus those for a run with a single sample.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.destinations import KEYS, samples
from benchmarks.ingest.server import serving
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

WEEK_S = 7 * 86_400


class Usage(NamedTuple):
    """The CPU time and memory that a process used."""

    cpu_s: float
    wall_s: float
    memory_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of delivering a backlog.")
    parser.add_argument("--seconds", type=int, default=WEEK_S, help="length of the run; default: a week")
    parser.add_argument("--every", type=int, default=10, help="seconds between samples; default: 10")
    options = parser.parse_args()
    count = options.seconds // options.every
    with tempfile.TemporaryDirectory() as folder, serving(f"{folder}/store") as (_, port):
        for run, number in (("first", 1), ("backlog", count)):
            record(run, f"{folder}/data", number, options.every)
        url = f"http://127.0.0.1:{port}"
        first, backlog = (synced(run, f"{folder}/data", url) for run in ("first", "backlog"))
        size = sum(path.stat().st_size for path in Path(run_dir("backlog", f"{folder}/data")).glob("*.rvj"))
        points = count * KEYS
        cpu_s = backlog.cpu_s - first.cpu_s
        print(
            "| samples | points | journal, MB | s | s of CPU | µs of CPU per point | additional memory, MB |"
        )
        print("|---|---|---|---|---|---|---|")
        print(
            f"| {count:,} | {points:,} | {size / 1e6:.1f} | {backlog.wall_s:.1f} | {cpu_s:.2f} "
            f"| {cpu_s / points * 1e6:.2f} | {backlog.memory_mb - first.memory_mb:.1f} |"
        )


def record(run: str, folder: str, count: int, every_s: int) -> None:
    """Write a run of so many samples that ended a minute ago."""
    end_ms = time.time_ns() // 1_000_000 - 60_000
    start_ms = end_ms - count * every_s * 1000
    about = {"run": run, "project": "bench", "host": "node1", "role": "monitor", "t": start_ms}
    journal = JournalWriter(run_dir(run, folder), "monitor.node1.1", {**about, "interval_s": float(every_s)})
    for number, sample in enumerate(islice(samples(count), count)):
        journal.sample(start_ms + number * every_s * 1000, sample)
    journal.json(frames.LIFECYCLE, {"t": end_ms, "what": "end", "state": "finished", "exit_code": 0})
    journal.close()


def synced(run: str, folder: str, url: str) -> Usage:
    """Deliver a run with `runvitals sync`.

    Raises:
        SystemExit: it was not delivered.
    """
    command = [sys.executable, "-m", "runvitals", "sync", run, "--to", url, "--dir", folder]
    began_s = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"`{' '.join(command)}` failed")
    return Usage(used.ru_utime + used.ru_stime, time.monotonic() - began_s, used.ru_maxrss / 1024)


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"
    main()
