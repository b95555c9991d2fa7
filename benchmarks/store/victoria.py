"""For comparison: VictoriaMetrics from Debian's package, with its own import and query API.

Its acknowledgement is not durable: samples acknowledged in the last seconds are lost if it is killed. CPU
time is that of its process, without the cost of making the requests.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from urllib.parse import urlencode

import numpy as np

from benchmarks.store.chunks import CHURN_RUNS, CHURN_TICKS
from benchmarks.store.dataset import METRICS, Fleet, RunSamples
from benchmarks.store.measure import Numbers, cpu_s, drop_from_cache, memory_mb, once_ms, repeated_ms, size
from runvitals.base.buckets import Floats

PROGRAM = "victoria-metrics"
INGESTED = 600_000


def measure(fleet: Fleet, runs: int, folder: str) -> Numbers:
    """Run all measurements; none if the program is not installed."""
    if shutil.which(PROGRAM) is None:
        return {}
    samples = [fleet.run(number) for number in range(min(runs, 20))]
    path = os.path.join(folder, "victoria")
    server = VictoriaServer(path)
    try:
        numbers = _ingest(server, samples[0], 10) | _fill(server, samples)
        time.sleep(10)  # until samples in memory are written to disk
        numbers |= {"memory after filling, MB": memory_mb(server.pid)}
        run = samples[0]
        numbers["chart of 8 series, warm ms"] = repeated_ms(lambda: server.chart(run), 5)
    finally:
        server.close()
    points = sum(run.values.size for run in samples)
    numbers["bytes/point"] = size(path) / points
    drop_from_cache(path)
    server = VictoriaServer(path)
    try:
        numbers["chart of 8 series, cold ms"] = once_ms(lambda: server.chart(samples[0]))
    finally:
        server.close()
        shutil.rmtree(path)
    return numbers | _churn(samples[0], path)


class VictoriaServer:
    def __init__(self, path: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [
                PROGRAM,
                f"-storageDataPath={path}",
                f"-httpListenAddr=127.0.0.1:{port}",
                "-retentionPeriod=100y",
            ],
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(100):
            try:
                self._connection.connect()
                return
            except OSError:
                time.sleep(0.1)
        raise OSError(f"{PROGRAM} does not accept connections")

    def post(self, path: str, data: bytes, form: bool = False) -> bytes:
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        self._connection.request("POST", path, data, headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status >= 300:
            raise OSError(f"{path}: {response.status} {body[:200]!r}")
        return body

    def chart(self, run: RunSamples) -> bytes:
        """Minimum and maximum of 8 series in 1,000 steps."""
        step = int(run.t[-1] - run.t[0]) // 1000 // 1000
        names = "|".join(f"m{metric}" for metric in METRICS[:8])
        series = f'{{__name__=~"{names}",run="{run.run}"}}'
        for function in ("min_over_time", "max_over_time"):
            fields = {"query": f"{function}({series}[{step}s])", "step": f"{step}s", "nocache": "1"}
            times = {"start": str(run.t[0] / 1000), "end": str(run.t[-1] / 1000)}
            read = self.post("/api/v1/query_range", urlencode(fields | times).encode(), form=True)
        return read

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait()


def _lines(run: int, t: Sequence[int], values: Floats) -> bytes:
    return b"\n".join(
        json.dumps(
            {"metric": {"__name__": f"m{metric}", "run": str(run)}, "values": column, "timestamps": list(t)}
        ).encode()
        for metric, column in zip(METRICS, values.T.tolist(), strict=True)
    )


def _ingest(server: VictoriaServer, run: RunSamples, ticks: int) -> Numbers:
    """One writer that repeatedly sends a request and waits for the response."""
    bodies = [
        _lines(9999, run.t[first : first + ticks].tolist(), run.values[first : first + ticks])
        for first in range(0, INGESTED // len(METRICS), ticks)
    ]
    points = INGESTED
    cpu, start = cpu_s(server.pid), time.perf_counter()
    waits = [once_ms(lambda data=data: server.post("/api/v1/import", data)) for data in bodies]  # type: ignore[misc]
    wall = time.perf_counter() - start
    name = f"ingest {len(METRICS)}x{ticks} by 1"
    return {
        f"{name}, points/s": points / wall,
        f"{name}, us CPU/point": (cpu_s(server.pid) - cpu) / points * 1e6,
        f"{name}, ack p50 ms": float(np.percentile(waits, 50)),
        f"{name}, ack p99 ms": float(np.percentile(waits, 99)),
    }


def _fill(server: VictoriaServer, samples: list[RunSamples]) -> Numbers:
    points = sum(run.values.size for run in samples)
    cpu, wall = cpu_s(server.pid), 0.0
    for run in samples:
        data = _lines(run.run, run.t.tolist(), run.values)
        wall += once_ms(lambda data=data: server.post("/api/v1/import", data)) / 1000  # type: ignore[misc]
    return {
        "fill, points/s": points / wall,
        "fill, us CPU/point": (cpu_s(server.pid) - cpu) / points * 1e6,
    }


def _churn(source: RunSamples, path: str) -> Numbers:
    server = VictoriaServer(path)
    series = CHURN_RUNS * len(METRICS)
    try:
        cpu, wall = cpu_s(server.pid), 0.0
        for first in range(0, CHURN_RUNS, 100):
            run_numbers = range(first, first + 100)
            data = b"\n".join(
                _lines(run, (source.t[:CHURN_TICKS] + run * 1000).tolist(), source.values[:CHURN_TICKS])
                for run in run_numbers
            )
            wall += once_ms(lambda data=data: server.post("/api/v1/import", data)) / 1000  # type: ignore[misc]
        time.sleep(10)
        numbers = {
            "churn, series/s": series / wall,
            "churn, us CPU/series": (cpu_s(server.pid) - cpu) / series * 1e6,
            "churn, memory MB": memory_mb(server.pid),
        }
        end = int(source.t[CHURN_TICKS]) // 1000 + CHURN_RUNS
        fields = {"query": "avg(avg_over_time(m1[1d]))", "time": str(end), "nocache": "1"}
        numbers["churn, 1 metric over all runs, ms"] = repeated_ms(
            lambda: server.post("/api/v1/query", urlencode(fields).encode(), form=True), 3
        )
    finally:
        server.close()
    numbers["churn, bytes/series"] = size(path) / series
    return numbers
