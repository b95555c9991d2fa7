"""MLflow's `runs/log-batch`: metrics a second, CPU of the server for a metric, and how long a request takes.

    python -m benchmarks.doors.mlflow [--seconds 10] [--tracking-uri http://127.0.0.1:5000]

Each sender logs 1,000 metrics in a request to a run of its own: one key at 1,000 steps, or 1,000 keys at
one step. `runvitals server` is a process of its own, whose CPU is user and system. With `--tracking-uri`,
the same requests go to a `mlflow server` that runs already.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.ingest.server import serving
from benchmarks.store.measure import cpu_s

METRICS = 1000
SENDERS = (1, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="duration of each load (default: 10)")
    parser.add_argument("--tracking-uri", help="of a `mlflow server` to measure instead")
    options = parser.parse_args()
    print("| request | senders | metrics/s | CPU a metric | median | 99th of 100 |")
    print("|---|---|---|---|---|---|")
    for senders in SENDERS:
        for title, keys in (("1 key × 1,000 steps", 1), ("1,000 keys × 1 step", METRICS)):
            if options.tracking_uri:
                port = urlsplit(options.tracking_uri).port or 80
                found = measure(port, None, senders, keys, options.seconds)
            else:
                with tempfile.TemporaryDirectory() as folder, serving(folder) as (pid, port):
                    found = measure(port, pid, senders, keys, options.seconds)
            print(row(f"{title} | {senders}", found))


@dataclass
class Result:
    """What was measured of one kind of request."""

    points: int = 0
    seconds: float = 0.0
    cpu_s: float | None = None
    acks_ms: list[float] = field(default_factory=list)


def row(title: str, found: Result) -> str:
    """A row of the table."""
    ordered = sorted(found.acks_ms)
    late = ordered[int(len(ordered) * 0.99)]
    rate, cpu = found.points / found.seconds, "–"
    if found.cpu_s is not None:
        cpu = f"{found.cpu_s / found.points * 1e6:.2f} µs"
    return f"| {title} | {rate:,.0f} | {cpu} | {statistics.median(ordered):.1f} ms | {late:.1f} ms |"


def measure(port: int, pid: int | None, senders: int, keys: int, seconds: float) -> Result:
    """Send requests for some time."""
    result = Result()
    lock = threading.Lock()
    experiment = call(port, "experiments/create", {"name": f"bench-{time.time_ns()}"})["experiment_id"]
    before_s, began_s = 0.0 if pid is None else cpu_s(pid), time.monotonic()

    def send() -> None:
        created = call(port, "runs/create", {"experiment_id": experiment, "start_time": now_ms()})
        acks_ms = log(port, created["run"]["info"]["run_id"], keys, began_s + seconds)
        with lock:
            result.acks_ms += acks_ms
            result.points += len(acks_ms) * METRICS

    threads = [threading.Thread(target=send) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result.seconds = time.monotonic() - began_s
    result.cpu_s = None if pid is None else cpu_s(pid) - before_s
    return result


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def log(port: int, run: str, keys: int, until_s: float) -> list[float]:
    """Log until a time; returns how long each request took, ms."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    first_ms, number, acks_ms = now_ms() - 3_600_000, 0, []
    while time.monotonic() < until_s:
        metrics = [
            {
                "key": f"m{place}" if keys > 1 else "loss",
                "value": place / 7 + number,
                "timestamp": first_ms + number * METRICS + (0 if keys > 1 else place),
                "step": number if keys > 1 else number * METRICS + place,
            }
            for place in range(METRICS)
        ]
        body = json.dumps({"run_id": run, "metrics": metrics}).encode()
        began_s = time.monotonic()
        connection.request("POST", "/api/2.0/mlflow/runs/log-batch", body, headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        acks_ms.append((time.monotonic() - began_s) * 1000)
        number += 1
    return acks_ms


def call(port: int, path: str, message: dict[str, object]) -> dict[str, dict[str, dict[str, str]]]:
    """Send a message; returns the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"/api/2.0/mlflow/{path}", json.dumps(message), headers)
    response = connection.getresponse()
    answer: dict[str, dict[str, dict[str, str]]] = json.loads(response.read())
    assert response.status == 200, answer
    return answer


if __name__ == "__main__":
    main()
