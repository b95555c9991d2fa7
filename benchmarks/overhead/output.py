"""What recording the output costs the training: CPU time of what it prints, with and without.

Each pair of processes prints the same, one after the other, into a pipe that another process empties; the
difference is of the process's CPU clock, the median of the pairs. The monitor's CPU is that of its process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from benchmarks.overhead.report import table

TOOLS = ("nothing", "runvitals", "wandb")
_SCRIPT = """
import json, os, sys, tempfile, threading, time
tool, case = sys.argv[1:3]
run = None
if tool == "wandb":
    import wandb
    run = wandb.init(mode="offline", dir=tempfile.mkdtemp(), settings=wandb.Settings(silent=True))
else:
    import runvitals
    run = runvitals.init(id="run", console=None if tool == "runvitals" else False, settings={"quiet": True})

def lines(n):
    for step in range(n):
        print(f"step {step} loss {1 / (step + 1):.4f} lr 0.001")

def bars(n):
    for step in range(n):
        bar = "#" * (step * 20 // n)
        sys.stderr.write(f"\\r{step * 100 // n:3}%|{bar:20}| {step}/{n} [00:12<00:14, 18.9it/s]")
        sys.stderr.flush()

def threads(n):
    started = [threading.Thread(target=lines, args=(n // 4,)) for _ in range(4)]
    [thread.start() for thread in started]
    [thread.join() for thread in started]

def c_library(n):
    for step in range(n):
        os.write(2, b"NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7\\n")

def training(n):
    for step in range(n):
        until = time.process_time_ns() + 1_000_000
        while time.process_time_ns() < until:
            pass
        print(f"step {step} loss {1 / (step + 1):.4f} lr 0.001")

CASES = {"lines": (lines, 100_000), "bars": (bars, 20_000), "threads": (threads, 100_000),
         "c_library": (c_library, 20_000), "training": (training, 2_000)}
function, n = CASES[case]
function(n // 20)
time.sleep(0.2)
began, wall = time.process_time_ns(), time.perf_counter_ns()
function(n)
used, waited = time.process_time_ns() - began, time.perf_counter_ns() - wall
monitor = 0
if tool == "runvitals":
    time.sleep(2.5)
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and b"runvitals-monitor" in open(f"/proc/{pid}/cmdline", "rb").read():
                files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
                if any(os.environ["RUNVITALS_DIR"] in path for path in files):
                    monitor = int(open(f"/proc/{pid}/schedstat").read().split()[0])
        except OSError:
            continue
with open(sys.argv[3], "w") as file:
    json.dump({"us": used / n / 1000, "wall_us": waited / n / 1000, "monitor_ms": monitor / 1e6}, file)
run.finish()
"""
CASES = {
    "lines": "`print()` of a line of 30 characters, 100,000 times",
    "bars": "a progress bar, 20,000 states, each flushed",
    "threads": "`print()` in four threads",
    "c_library": "`write(2)` past Python, as NCCL does",
    "training": "1 ms of work, then `print()`",
}


class Printing(NamedTuple):
    """The cost of one call: CPU time of the training, and of the monitor over the whole run."""

    us: float
    monitor_ms: float


def measure(pairs: int) -> dict[str, dict[str, list[Printing]]]:
    """By case and tool: the runs, the tools of each pair one after the other."""
    costs: dict[str, dict[str, list[Printing]]] = {case: {tool: [] for tool in TOOLS} for case in CASES}
    for case in CASES:
        for _ in range(pairs):
            for tool in TOOLS:
                costs[case][tool].append(_printing(tool, case))
    return costs


def _printing(tool: str, case: str) -> Printing:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/result.json"
        environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "src", "RUNVITALS_DIR": folder, "HOME": folder}
        command = [sys.executable, "-c", _SCRIPT, tool, case, path]
        with (
            subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader,
            subprocess.Popen(command, stdout=reader.stdin, stderr=reader.stdin, env=environ) as training,
        ):
            assert reader.stdin is not None
            reader.stdin.close()
            if training.wait() != 0:
                raise RuntimeError(f"{tool}, {case}: exit code {training.returncode}")
        with open(path) as file:
            found = json.load(file)
    return Printing(found["us"], found["monitor_ms"])


def text(costs: dict[str, dict[str, list[Printing]]], pairs: int) -> str:
    """The results as Markdown."""
    rows = []
    for case, by_tool in costs.items():
        bare = statistics.median(run.us for run in by_tool["nothing"])
        more = {
            tool: statistics.median(
                run.us - other.us for run, other in zip(by_tool[tool], by_tool["nothing"], strict=True)
            )
            for tool in ("runvitals", "wandb")
        }
        monitor = statistics.median(run.monitor_ms for run in by_tool["runvitals"])
        rows.append([
            CASES[case], f"{bare:.2f}", *(f"{more[tool]:+.2f}" for tool in more),
            f"{more['runvitals'] / bare * 100:+.1f} %", f"{monitor:.0f} ms",
        ])  # fmt: skip
    heading = ["", "µs CPU a call", "runvitals", "wandb", "of the call", "monitor, whole run"]
    about = (__doc__ or "").partition("\n\n")[2]
    return f"### What recording the output costs\n\n{pairs} pairs. {about}\n{table(heading, rows)}"
