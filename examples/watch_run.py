"""Watch a run: prints a line per second, and a summary at the end.

    python examples/watch_run.py        # the newest run
    python examples/watch_run.py RUN

Uses `runvitals.open_run`, which reads a run's journal while it is being written.
"""

from __future__ import annotations

import argparse
import sys
import time

import runvitals
from runvitals.journal.paths import run_dir
from runvitals.model.errors import UnknownRun
from runvitals.query import OpenRun

GPU = ("gpu.0.gpu", "gpu.0.powerWatts", "gpu.0.temp")  # shown if there is a GPU
LINE = ("cpu", *GPU, "proc.memory.rssMB", "monitor.cpuPercent")
SUMMARY = (
    "cpu",
    *GPU,
    "proc.memory.rssMB",
    "disk.out",
    "network.sent",
    "monitor.cpuPercent",
    "monitor.rssMB",
)
SUMMARY_ROW = "  {:<20} {:>10} {:>10}  {}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Watch a run.")
    parser.add_argument("run", nargs="?", default="latest", help="run id; default: the newest run")
    wanted = parser.parse_args().run
    try:
        run = wait_for(wanted)
        while run.refresh().state == "running":
            show(line(run))
            time.sleep(1)
        show(line(run), last=True)
        print_summary(run)
    except KeyboardInterrupt:
        return 130
    except UnknownRun as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def wait_for(wanted: str, seconds: float = 30) -> OpenRun:
    """Open a run that may be just starting."""
    until = time.monotonic() + seconds
    while True:
        try:
            return runvitals.open_run(wanted)
        except UnknownRun:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def line(run: OpenRun) -> str:
    """State, number of samples, last values, and the last logged row."""
    statistics = {statistic.key: statistic for statistic in run.statistics(*LINE)}
    shown = [run.state, f"{max((statistic.n for statistic in statistics.values()), default=0)} samples"]
    shown += [
        f"{key} {statistic.last:.4g} {statistic.unit}"
        for key, statistic in statistics.items()
        if statistic.last is not None
    ]
    for call in run.history()[-1:]:
        shown += [f"{key} {value:.4g}" for key, value in call.data.items() if isinstance(value, (int, float))]
    return "  ".join(shown)


def show(text: str, last: bool = False) -> None:
    """Print a line; on a terminal, replace the previous one."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{text}", end="\n" if last else "", flush=True)
    else:
        print(text, flush=True)


def print_summary(run: OpenRun) -> None:
    facts = run.facts
    print(f"\nrun {run.id} of project {facts.project}: {run.state} after {facts.duration_ms / 1000:.1f} s")
    print(SUMMARY_ROW.format("", "mean", "max", ""))
    for statistic in run.statistics(*SUMMARY):
        if statistic.total is not None:  # a counter: its increase over the run
            print(SUMMARY_ROW.format(statistic.key, "", "", f"{statistic.total:.4g} {statistic.unit}"))
        elif statistic.n:
            print(
                SUMMARY_ROW.format(
                    statistic.key, f"{statistic.mean:.4g}", f"{statistic.max:.4g}", statistic.unit
                )
            )
    print(f"details: runvitals show {run.id}")
    print(f"journal: {run_dir(run.id)}")


if __name__ == "__main__":
    sys.exit(main())
