"""System metrics in MLflow: its own monitor compared with ours, in the same training script and server.

    python -m benchmarks.mlflow [--seconds 10]

Each case is a training process with a run on a real `mlflow server` (SQLite, one worker), sampled once a
second. First the training is idle: measured are the CPU time of the training process, of all its descendants
and of the server, from the kernel's clock of each process, and the requests in the server's log. Then it
trains in steps of about 0.7 ms: the stall is the excess duration of steps that overlap a sample
(`overhead/alignment.py`). Finally, short runs and runs whose training is killed, and the points that the
server received.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from array import array
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.overhead import alignment, processes
from benchmarks.overhead.peers import runvitals_samples
from benchmarks.overhead.report import table
from runvitals.journal import paths

NOTHING, THEIRS, OURS = "no system metrics", "MLflow's monitor", "runvitals.mlflow"
CASES = (NOTHING, THEIRS, OURS)
ROOT = Path(__file__).parents[1]
PORT = 5987
MEMORY_KEY = "system/system_memory_usage_megabytes"
_MS = 1_000_000

# The training: CASE SECONDS DIRECTORY. With SECONDS > 0 it is idle for that time, then trains for that time;
# otherwise it is only idle. MLflow's thread collects at the end of each cycle, after the interval and two
# requests.
TRAINER = """
import json, sys, time
import mlflow
case, seconds, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]
collected = []
if case == "runvitals.mlflow":
    import runvitals.mlflow
elif case == "MLflow's monitor":
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor as Theirs
    collect = Theirs.collect_metrics
    def collecting(self):
        found = collect(self)
        collected.append(time.time_ns())
        return found
    Theirs.collect_metrics = collecting
from benchmarks.overhead.trainer import train
answer = lambda **facts: print(json.dumps(facts), flush=True)
began = time.perf_counter()
run = mlflow.start_run(log_system_metrics=case != "no system metrics")
answer(run=run.info.run_id, start_ms=(time.perf_counter() - began) * 1e3)
if seconds > 0:
    sys.stdin.readline()
    train("python", seconds, folder + "/steps")
    answer(collected=collected)
else:
    time.sleep(-seconds)
sys.stdin.readline()
began = time.perf_counter()
mlflow.end_run()
answer(finish_ms=(time.perf_counter() - began) * 1e3)
"""
_SECOND_NS = 1_000_000_000


class Server:
    """A real tracking server, and the requests in its log."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "server.log"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(PORT)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
        environ = {**os.environ, **SILENT, processes.MARKER: "server"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log)
        until_s = time.monotonic() + 120
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.2)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{URI}/health", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def cpu_ns(self) -> int:
        return sum(processes.cpu_ns(pid) for pid in processes.marked("server"))

    def requests(self) -> int:
        """The number of requests so far."""
        return sum(
            " HTTP/1.1" in line and "/api/2.0/mlflow/" in line for line in self.log.read_text().splitlines()
        )

    def points(self, run: str) -> int:
        """The number of points of one system metric of a run."""
        question = f"{URI}/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key={MEMORY_KEY}"
        with urllib.request.urlopen(question, timeout=30) as response:
            return len(json.loads(response.read()).get("metrics", ()))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


URI = f"http://127.0.0.1:{PORT}"
SILENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


class Training:
    """A training process and its descendants."""

    def __init__(self, case: str, seconds: float, folder: Path, interval_s: float = 1.0) -> None:
        self.mark = f"{case}-{time.monotonic_ns()}"
        self.folder = folder / self.mark.replace(" ", "_").replace("'", "")
        self.folder.mkdir()
        environ = {
            **os.environ,
            **SILENT,
            "MLFLOW_TRACKING_URI": URI,
            "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": str(interval_s),
            "RUNVITALS_DIR": str(self.folder / "data"),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            processes.MARKER: self.mark,
        }
        command = [sys.executable, "-c", TRAINER, case, str(seconds), str(self.folder)]
        self.process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        reported = self.read()
        self.run: str = reported["run"]
        self.start_ms: float = reported["start_ms"]

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the training ended by itself, exit code {self.process.wait()}")
        reported: dict[str, Any] = json.loads(line)
        return reported

    def say(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def clocks(self) -> tuple[int, int]:
        """CPU time of the training process, and of its descendants, in ns."""
        others = [pid for pid in processes.marked(self.mark) if pid != self.process.pid]
        return processes.cpu_ns(self.process.pid), sum(processes.cpu_ns(pid) for pid in others)

    def finish(self) -> float:
        """End the run; returns how long that took, in ms."""
        self.say()
        took_ms = float(self.read()["finish_ms"])
        self.process.wait()
        return took_ms

    def close(self) -> None:
        for pid in processes.marked(self.mark):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@dataclass(frozen=True)
class Result:
    """The results of one case, sampled once a second. CPU in ms per second while the training is idle."""

    case: str
    trainer_ms: float
    helpers_ms: float
    server_ms: float
    requests: float
    stall: alignment.Stall | None
    start_ms: float
    finish_ms: float
    threads: int


def measure(case: str, seconds: float, server: Server, folder: Path) -> Result:
    """Measure the idle training, then the durations of its steps."""
    training = Training(case, seconds, folder)
    try:
        time.sleep(2.0)  # the relay starts
        (trainer_ns, helpers_ns), server_ns, requests = training.clocks(), server.cpu_ns(), server.requests()
        began_s = time.monotonic()
        time.sleep(seconds)
        took_s = time.monotonic() - began_s
        later, server_later_ns, requests_later = training.clocks(), server.cpu_ns(), server.requests()
        threads = processes.thread_count(training.process.pid)
        training.say()
        collected = training.read()["collected"]
        finish_ms = training.finish()
        ends = array("q")
        ends.frombytes((training.folder / "steps").read_bytes())
        events = [(before + _SECOND_NS, after) for before, after in pairwise(collected)]
        if case == OURS:
            journal = paths.run_dir(training.run, str(training.folder / "data"))
            events = [(sample.begin_ns, sample.end_ns) for sample in runvitals_samples(journal)]
        return Result(
            case,
            (later[0] - trainer_ns) / _MS / took_s,
            (later[1] - helpers_ns) / _MS / took_s,
            (server_later_ns - server_ns) / _MS / took_s,
            (requests_later - requests) / took_s,
            alignment.stall(ends, events) if events else None,
            training.start_ms,
            finish_ms,
            threads,
        )
    finally:
        training.close()


def points_of_short_runs(case: str, server: Server, folder: Path) -> list[int]:
    """The numbers of points of runs of 0.3, 1.5 and 3.5 s at an interval of 1 s."""
    points = []
    for length_s in (0.3, 1.5, 3.5):
        training = Training(case, -length_s, folder)
        try:
            training.finish()
            points.append(server.points(training.run))
        finally:
            training.close()
    return points


def points_of_killed_runs(case: str, server: Server, folder: Path) -> int:
    """The number of points of a run whose training was killed after 4.5 s."""
    training = Training(case, -60, folder)
    try:
        time.sleep(4.5)
        training.process.kill()
        training.process.wait()
        time.sleep(2.0)
        return server.points(training.run)
    finally:
        training.close()


def report(results: list[Result], short: dict[str, list[int]], killed: dict[str, int]) -> str:
    """The tables of RESULTS.md."""
    bare = next(result for result in results if result.case == NOTHING)
    header = [
        "", "threads", "stall, ms (p90)", "CPU in the training", "CPU of its helpers", "CPU of the server",
        "requests a s", "start_run, ms", "end_run, ms",
    ]  # fmt: skip
    rows = [
        [
            result.case,
            str(result.threads),
            "–" if result.stall is None else f"{result.stall.median:.2f} ({result.stall.p90:.2f})",
            f"{result.trainer_ms:.2f}",
            f"{result.helpers_ms:.2f}",
            f"{result.server_ms - bare.server_ms:.2f}",
            f"{result.requests:.2f}",
            f"{result.start_ms:.0f}",
            f"{result.finish_ms:.0f}",
        ]
        for result in results
    ]
    kept = [[case, *(str(count) for count in short[case]), str(killed[case])] for case in (THEIRS, OURS)]
    lost = table(["points at the server", "0.3 s run", "1.5 s run", "3.5 s run", "killed after 4.5 s"], kept)
    what = "CPU in ms a second at one sample a second, the server's above what it uses anyway."
    return "\n".join([table(header, rows), "", what, "", lost, ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mlflow", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each case waits, and trains")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="runvitals-bench-") as name:
        folder = Path(name)
        server = Server(folder)
        try:
            results = [measure(case, arguments.seconds, server, folder) for case in CASES]
            short = {case: points_of_short_runs(case, server, folder) for case in (THEIRS, OURS)}
            killed = {case: points_of_killed_runs(case, server, folder) for case in (THEIRS, OURS)}
        finally:
            server.close()
    print(report(results, short, killed))


if __name__ == "__main__":
    main()
