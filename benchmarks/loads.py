"""Large loads on the doors, with the clients' own code: long runs, wide rows, large texts, many runs at once.

    scripts/bench loads [--rows 100000] [--runs 200]

How long a client waits for a request (p99), and the CPU that a value costs server and client, beside
`mlflow server` and beside wandb's offline mode with `wandb sync`. Ends with 1 if something was not read back.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.doors import log_batch
from benchmarks.ingest import server
from benchmarks.store.measure import cpu_s

WIDE = 5000
_BATCH = 1000
_KEPT = 262_144
"""Characters of a text; of longer ones, the beginning is kept, and an event of the run says so."""
_KEY = "0123456789" * 4
_WANDB = """
import sys, wandb
rows, width, mode, run_id = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
settings = wandb.Settings(mode=mode, silent=True, x_disable_stats=True, console="off")
run = wandb.init(project="loads", id=run_id, settings=settings)
names = [f"layer{number}/norm" for number in range(width)]
for step in range(rows):
    run.log({name: step + 0.5 for name in names}, step=step)
if width > 1000:
    run.log({"text": "x" * 10_000_000})
run.finish()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000, help="of the long run (default: 100000)")
    parser.add_argument("--runs", type=int, default=200, help="that log at once (default: 200)")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    print("| load | server | wait p50, ms | p99, ms | server's CPU, µs a value | client's | read back |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    for name, serving in (("runvitals", server.serving), ("mlflow server", log_batch.serving)):
        wrong += _mlflow_loads(name, serving, options.rows, options.runs)
    wrong += _wandb_loads(options.rows)
    sys.exit(wrong > 0)


_Outcome = tuple[list[float], int, bool]
"""How long each request took, ms; how many values there were; whether all were read back."""


class _Mlflow:
    """MLflow's API on a port."""

    def __init__(self, port: int) -> None:
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/2.0/mlflow/", timeout=600)

    def call(self, path: str, **message: Any) -> Any:
        return self._client.post(path, json=message).raise_for_status().json()

    def count(self, run: str, key: str) -> int:
        """How many values of a metric are read back."""
        count, token = 0, ""
        while True:
            query = {"run_id": run, "metric_key": key, "max_results": "25000"}
            more = {"page_token": token} if token else {}
            response = self._client.get("metrics/get-history", params={**query, **more})
            page = response.raise_for_status().json()
            count += len(page.get("metrics", []))
            token = page.get("next_page_token", "")
            if not token:
                return count


def _mlflow_loads(name: str, serving: Any, rows: int, runs: int) -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, serving(folder) as (pid, port):
        mlflow = _Mlflow(port)
        experiment = mlflow.call("experiments/create", name="loads")["experiment_id"]
        loads: dict[str, Callable[[], _Outcome]] = {
            f"{rows:,} steps of 1 metric": lambda: _long(mlflow, experiment, rows),
            f"20 steps of {WIDE:,} metrics": lambda: _wide(mlflow, experiment, 20),
            f"{runs} runs at once, 20 requests of 10 metrics": lambda: _many(mlflow, experiment, runs),
        }
        for load, work in loads.items():
            before_s, own_s = _server_cpu_s(pid), time.process_time()
            waits_ms, values, is_same = work()
            used_us = (_server_cpu_s(pid) - before_s) / values * 1e6
            client_us = (time.process_time() - own_s) / values * 1e6
            p50, p99 = np.percentile(waits_ms, [50, 99])
            wrong += not is_same
            print(
                f"| MLflow: {load} | {name} | {p50:.1f} | {p99:.1f} | {used_us:.1f} | {client_us:.1f} "
                f"| {'all' if is_same else 'NOT ALL'} |",
                flush=True,
            )
    return wrong


def _begin(mlflow: _Mlflow, experiment: str) -> str:
    created = mlflow.call("runs/create", experiment_id=experiment, start_time=time.time_ns() // 1_000_000)
    run: str = created["run"]["info"]["run_id"]
    return run


def _log(mlflow: _Mlflow, run: str, metrics: list[dict[str, Any]], waits_ms: list[float]) -> None:
    started_s = time.perf_counter()
    mlflow.call("runs/log-batch", run_id=run, metrics=metrics)
    waits_ms.append((time.perf_counter() - started_s) * 1000)


def _point(key: str, step: int) -> dict[str, Any]:
    return {"key": key, "value": step + 0.5, "timestamp": 1_790_000_000_000 + step, "step": step}


def _long(mlflow: _Mlflow, experiment: str, rows: int) -> _Outcome:
    run, waits_ms = _begin(mlflow, experiment), list[float]()
    for first in range(0, rows, _BATCH):
        _log(
            mlflow, run, [_point("loss", step) for step in range(first, min(rows, first + _BATCH))], waits_ms
        )
    return waits_ms, rows, mlflow.count(run, "loss") == rows


def _wide(mlflow: _Mlflow, experiment: str, rows: int) -> _Outcome:
    run, waits_ms = _begin(mlflow, experiment), list[float]()
    for step in range(rows):
        for first in range(0, WIDE, _BATCH):
            keys = range(first, first + _BATCH)
            _log(mlflow, run, [_point(f"layer{key}/norm", step) for key in keys], waits_ms)
    is_same = all(mlflow.count(run, f"layer{key}/norm") == rows for key in (0, WIDE // 2, WIDE - 1))
    return waits_ms, rows * WIDE, is_same


def _many(mlflow: _Mlflow, experiment: str, runs: int) -> _Outcome:
    waits_ms: list[float] = []

    def one(number: int) -> bool:
        run = _begin(mlflow, experiment)
        for step in range(20):
            _log(mlflow, run, [_point(f"metric{key}", step) for key in range(10)], waits_ms)
        return mlflow.count(run, "metric9") == 20

    with ThreadPoolExecutor(runs) as pool:
        are_same = list(pool.map(one, range(runs)))
    return waits_ms, runs * 200, all(are_same)


def _wandb_loads(rows: int) -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, server.serving(folder) as (pid, port):
        for load, count, width in (
            (f"{rows:,} rows of 1 metric", rows, 1),
            (f"20 rows of {WIDE:,}, 10 MB", 20, WIDE),
        ):
            for how in ("online", "offline + sync"):
                run = f"{how[:3]}{width}"
                before_s, own_s = _server_cpu_s(pid), _children_s()
                wall_s = time.perf_counter()
                _run_wandb(folder, port, count, width, how, run)
                wall_s = time.perf_counter() - wall_s
                used_us = (_server_cpu_s(pid) - before_s) / (count * width) * 1e6
                client_us = (_children_s() - own_s) / (count * width) * 1e6
                is_same = _is_read_back(port, run, count, width)
                wrong += not is_same
                print(
                    f"| wandb: {load} ({wall_s:.0f} s) | runvitals, {how} | – | – | {used_us:.1f} "
                    f"| {client_us:.1f} | {'all' if is_same else 'NOT ALL'} |",
                    flush=True,
                )
    return wrong


def _run_wandb(folder: str, port: int, rows: int, width: int, how: str, run: str) -> None:
    home = Path(folder, run)
    home.mkdir()
    names = ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "TMPDIR")
    environ = {**os.environ, **dict.fromkeys(names, str(home)), "WANDB_ERROR_REPORTING": "false"}
    environ |= {"WANDB_BASE_URL": f"http://127.0.0.1:{port}", "WANDB_API_KEY": _KEY}
    mode = "online" if how == "online" else "offline"
    words = [sys.executable, "-c", _WANDB, str(rows), str(width), mode, run]
    subprocess.run(words, env=environ, cwd=home, check=True)
    if mode == "offline":
        (recorded,) = home.glob("wandb/offline-run-*")
        sync = [str(Path(sys.executable).with_name("wandb")), "sync", str(recorded)]
        subprocess.run(sync, env=environ, cwd=home, check=True, capture_output=True)


def _is_read_back(port: int, run: str, rows: int, width: int) -> bool:
    url = f"http://127.0.0.1:{port}/api/v1/runs/{run}/history"
    query = {"keys": "layer0/norm", "resolution": "raw"}
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        response = httpx.get(url, params=query, timeout=120)
        if response.status_code == 200:
            steps = [step for group in response.json()["groups"] for step in group["step"]]
            if steps == list(range(rows)):
                break
        time.sleep(0.2)
    else:
        return False
    if width <= 1000:
        return True
    others = httpx.get(url, params={"keys": "text"}, timeout=120).json()["others"]
    return [len(other["value"]) for other in others] == [_KEPT]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _server_cpu_s(pid: int) -> float:
    return sum(
        cpu_s(each) for each in (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    )


if __name__ == "__main__":
    main()
