"""MLflow's `runs/log-batch`, beside `mlflow server` over SQLite with one worker.

Each client logs to a run of its own 1,000 metrics a request: the values of one key at 1,000 steps, or of
1,000 keys at one step. The bodies are those of MLflow's client; encoding them and reading the answers, it
would need more CPU than our server does.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.doors.peer import Door, Peer, Requests
from benchmarks.ingest import server

METRICS = 1000
_HOUR_MS = 3_600_000
_API = "/api/2.0/mlflow/"
_START_S = 120
_POST = (
    b"POST /api/2.0/mlflow/runs/log-batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
)


def one_key() -> Door:
    return _door("mlflow: 1 key × 1,000 steps", 1)


def many_keys() -> Door:
    return _door("mlflow: 1,000 keys × 1 step", METRICS)


def _door(name: str, keys: int) -> Door:
    def requests(port: int) -> Requests:
        return lambda client: _requests(port, keys)

    peers = [Peer("runvitals", server.serving, connected=requests)]
    if importlib.util.find_spec("flask") is not None:
        peers.append(Peer("mlflow server", serving, connected=requests))
    return Door(name, "metric", METRICS, (1, 4), peers)


@contextmanager
def serving(folder: str) -> Iterator[tuple[int, int]]:
    """Run a `mlflow server`. Yields its pid and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--artifacts-destination", folder]
    with Path(folder, "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _await(port)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait()


def _await(port: int) -> None:
    until_s = time.monotonic() + _START_S
    while True:
        try:
            _call(port, "experiments/search", {"max_results": 1})
            return
        except (OSError, http.client.HTTPException):
            if time.monotonic() > until_s:
                raise
            time.sleep(0.2)


def _requests(port: int, keys: int) -> Iterator[bytes]:
    now_ms = time.time_ns() // 1_000_000
    experiment = _call(port, "experiments/create", {"name": f"bench-{time.time_ns()}"})["experiment_id"]
    created = _call(port, "runs/create", {"experiment_id": experiment, "start_time": now_ms})
    run_id = created["run"]["info"]["run_id"]
    number = 0
    while True:
        body = _body(run_id, keys, number, now_ms - _HOUR_MS)
        yield _POST + b"content-length: %d\r\n\r\n" % len(body) + body
        number += 1


def _body(run_id: str, keys: int, number: int, first_ms: int) -> bytes:
    """The metrics of the next steps, one step a millisecond."""
    metrics = []
    for metric in range(METRICS):
        step = number if keys > 1 else number * METRICS + metric
        key = f"layer{metric}/gradient_norm" if keys > 1 else "loss"
        value = metric / 7 + number
        metrics.append({"key": key, "value": value, "timestamp": first_ms + step, "step": step})
    return json.dumps({"run_id": run_id, "metrics": metrics}).encode()


def _call(port: int, path: str, message: dict[str, object]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", _API + path, json.dumps(message), {"Content-Type": "application/json"})
    response = connection.getresponse()
    body: dict[str, Any] = json.loads(response.read())
    if response.status != 200:
        raise ConnectionError(f"{path}: {response.status} {body}")
    return body
