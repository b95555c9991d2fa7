"""Cost of storing and querying a fleet in the embedded store, ClickHouse and VictoriaMetrics."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tests.store.samples.clickhouse.server import ClickHouseServer, installed

from benchmarks.store.dataset import METRICS, Fleet
from benchmarks.store.measure import Numbers, cpu_s, size, spent
from benchmarks.store.victoria import VictoriaServer
from runvitals.base.buckets import Floats, grid
from runvitals.store.samples.clickhouse import ClickHouseSettings, ClickHouseStore
from runvitals.store.samples.interface import SampleBatch, SampleStore
from runvitals.store.samples.sqlite import SqliteChunks

T0 = 1_790_812_800_000  # 2026-10-01
TICKS_PER_BATCH = 10
_HOSTS_AT_ONCE = 500
_QUERIES_S, _MIN_QUERIES = 1.0, 5
_SOURCES = 50
"""Hosts with samples of their own; the others repeat them, shifted, which costs no store less."""


class HostValues:
    """The values of every host: `_SOURCES` of the simulated ones, each from another offset."""

    def __init__(self, fleet: Fleet) -> None:
        self._values = [fleet.run(number).values for number in range(_SOURCES)]
        self.ticks = len(self._values[0])

    def of(self, host: int, first: int) -> Floats:
        values = self._values[host % _SOURCES]
        rows = (np.arange(first, first + TICKS_PER_BATCH) + 7 * (host // _SOURCES)) % self.ticks
        return values[rows]


def batches(values: HostValues, hosts: int, ticks: int) -> Iterator[list[SampleBatch]]:
    """Yield batches in the order of time: ten ticks at 1 Hz of each host, of hundreds of hosts together."""
    for seq, first in enumerate(range(0, ticks, TICKS_PER_BATCH)):
        t = T0 + 1000 * np.arange(first, first + TICKS_PER_BATCH, dtype=np.int64)
        for start in range(0, hosts, _HOSTS_AT_ONCE):
            yield [
                SampleBatch(host, host, seq, METRICS, t, values.of(host, first))
                for host in range(start, min(start + _HOSTS_AT_ONCE, hosts))
            ]


def embedded(values: HostValues, hosts: int, ticks: int, folder: str) -> Numbers:
    with SqliteChunks(os.path.join(folder, "embedded")) as store:
        numbers = _ingest(store, values, hosts, ticks, lambda: 0.0)
        store.compact()
        numbers["bytes/point"] = size(store.folder) / (hosts * ticks * len(METRICS))
        return numbers | _queries(store, hosts, ticks, lambda: 0.0)


def clickhouse(values: HostValues, hosts: int, ticks: int, folder: str) -> Numbers:
    kind = "chdb" if installed("chdb") else "debian"
    if not installed(kind):
        return {}
    server = ClickHouseServer(Path(folder) / "clickhouse", kind)
    try:
        assert server.process is not None
        pid = server.process.pid
        waiting = os.path.join(folder, "waiting")
        with ClickHouseStore(server.address(), waiting, ClickHouseSettings(gather_s=0.0)) as store:
            before_s = cpu_s(pid)
            numbers = _ingest(store, values, hosts, ticks, lambda: cpu_s(pid))
            store.clickhouse.command("OPTIMIZE TABLE samples FINAL")
            points = hosts * ticks * len(METRICS)
            numbers["engine, merged into one part, µs CPU/point"] = (cpu_s(pid) - before_s) / points * 1e6
            numbers["bytes/point"] = store.stats().size_bytes / (hosts * ticks * len(METRICS))
            return numbers | _queries(store, hosts, ticks, lambda: cpu_s(pid))
    finally:
        server.stop()


def victoria(values: HostValues, hosts: int, ticks: int, folder: str) -> Numbers:
    path = os.path.join(folder, "victoria")
    server = VictoriaServer(path)
    try:
        cpu, began_s, made_s = cpu_s(server.pid), time.perf_counter(), 0.0
        for some in batches(values, hosts, ticks):
            making_s = time.perf_counter()
            body = b"".join(map(_lines, some))
            made_s += time.perf_counter() - making_s
            server.post("/api/v1/import", body)
        points = hosts * ticks * len(METRICS)
        wall_s = time.perf_counter() - began_s - made_s
        numbers = {"million points/s": points / wall_s / 1e6, "engine, µs CPU/point": 0.0}
        numbers["engine, µs CPU/point"] = (cpu_s(server.pid) - cpu) / points * 1e6
        time.sleep(10)  # until samples in memory are written to disk
        numbers["bytes/point"] = size(path) / points
        return numbers | _victoria_queries(server, ticks)
    finally:
        server.close()


def _lines(batch: SampleBatch) -> bytes:
    times = batch.t.tolist()
    lines = (
        {
            "metric": {"__name__": f"m{metric}", "run": str(batch.run)},
            "values": batch.values[:, column].tolist(),
            "timestamps": times,
        }
        for column, metric in enumerate(batch.metrics)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _ingest(
    store: SampleStore, values: HostValues, hosts: int, ticks: int, engine_cpu_s: Callable[[], float]
) -> Numbers:
    """Store everything, each batch durable before the next."""
    before, points = engine_cpu_s(), hosts * ticks * len(METRICS)
    wall_s = own_s = 0.0
    for some in batches(values, hosts, ticks):
        with spent() as here:
            store.append(some)
        wall_s, own_s = wall_s + here.wall_s, own_s + here.cpu_s
    engine_s = engine_cpu_s() - before
    return {
        "million points/s": points / wall_s / 1e6,
        "server, µs CPU/point": own_s / points * 1e6,
        "engine, µs CPU/point": engine_s / points * 1e6,
    }


def _queries(store: SampleStore, hosts: int, ticks: int, engine_cpu_s: Callable[[], float]) -> Numbers:
    """CPU time of this process and the engine together."""

    def cpu_ms(work: Callable[[], object]) -> float:
        return _cpu_ms(work, lambda: time.process_time() + engine_cpu_s())

    end = T0 + 1000 * ticks - 1
    on, some, every = grid(T0, end, 1000), range(min(100, hosts)), range(hosts)
    return {
        "chart of 8 series, ms CPU": cpu_ms(lambda: store.read_buckets([3], METRICS[:8], on)),
        "1 metric of 100 hosts, ms CPU": cpu_ms(lambda: store.read_buckets(some, METRICS[:1], on)),
        "newest of 100 hosts, ms CPU": cpu_ms(lambda: store.latest(some)),
        "mean over all hosts, ms CPU": cpu_ms(lambda: store.aggregate(5, every, T0, end, 60_000)),
    }


def _cpu_ms(work: Callable[[], object], spent_s: Callable[[], float]) -> float:
    """The CPU time of a call. Many are measured together: that of other processes is in steps of 10 ms."""
    work()
    before_s, until_s, calls = spent_s(), time.perf_counter() + _QUERIES_S, 0
    while calls < _MIN_QUERIES or time.perf_counter() < until_s:
        work()
        calls += 1
    return (spent_s() - before_s) / calls * 1000


def _victoria_queries(server: VictoriaServer, ticks: int) -> Numbers:
    step = f"{max(1, ticks // 1000)}s"

    def ask(query: str, step: str) -> bytes:
        times = f"&start={T0 / 1000}&end={T0 / 1000 + ticks}&step={step}&nocache=1"
        return server.post("/api/v1/query_range", f"query={query}{times}".encode(), form=True)

    names = "|".join(f"m{metric}" for metric in METRICS[:8])
    first_hundred = "|".join(map(str, range(100)))

    def cpu_ms(query: str, step: str) -> float:
        return _cpu_ms(lambda: ask(query, step), lambda: cpu_s(server.pid))

    return {
        "chart of 8 series, ms CPU": cpu_ms(f'{{__name__=~"{names}",run="3"}}', step),
        "1 metric of 100 hosts, ms CPU": cpu_ms(f'm1{{run=~"{first_hundred}"}}', step),
        "mean over all hosts, ms CPU": cpu_ms("avg(avg_over_time(m5[60s]))", "60s"),
    }
