"""Hosts send through two servers, of which one is killed now and then: is everything there that was
acknowledged?

A host sends ten ticks, waits for the acknowledgement, and sends them again to the other server if there is
none: as the relay does, but for its longer pauses.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
from tests.server.database import postgresql
from tests.store.samples.clickhouse.server import PROMPT, ClickHouseServer

from benchmarks.ingest.samples import KEYS
from benchmarks.ingest.server import requests
from benchmarks.store.measure import cpu_s
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.samples.clickhouse import ClickHouseStore
from runvitals.store.samples.interface import END_OF_TIME_MS

_TICKS = 10
_PAUSE_S = 0.2
_ANSWER_S = 30.0


class _Server:
    """A server that is killed and started again, always on the same port.

    Attributes:
        cpu_s: that it has used since it was ready; `start_cpu_s`: before, all its starts together.
    """

    def __init__(self, number: int, folder: Path, samples: str, metadata: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        options = ["--listen", f"127.0.0.1:{self.port}", "--store", samples, "--metadata", metadata]
        options += ["--dir", str(folder / str(number))]
        self._command = [sys.executable, "-m", "runvitals", "server", *options]
        self.kills = 0
        self.cpu_s = self.start_cpu_s = 0.0
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("a server did not start")
        self._ready_cpu_s = cpu_s(self._process.pid)
        self.start_cpu_s += self._ready_cpu_s

    def kill(self) -> None:
        self.cpu_s += cpu_s(self._process.pid) - self._ready_cpu_s
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()
        self.kills += 1

    def close(self) -> None:
        if self._process.returncode is None:
            self.cpu_s += cpu_s(self._process.pid) - self._ready_cpu_s
            self._process.terminate()
            self._process.communicate()


class _Host:
    """A host that sends its samples at 1 Hz."""

    def __init__(self, number: int, ports: list[int], until_s: float, waits_ms: list[float]) -> None:
        self.number = number
        self.acknowledged = 0
        self.resent = 0
        self._ports = ports
        self._until_s = until_s
        self._waits_ms = waits_ms
        self._port = ports[number % len(ports)]
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self) -> None:
        await asyncio.sleep(random.random() * _TICKS)
        due_s = time.monotonic()
        for request in self._requests():
            began_s = time.monotonic()
            if began_s > self._until_s:
                break
            while not await self._sent(request):
                self.resent += 1
                self._port = random.choice([port for port in self._ports if port != self._port])
                await asyncio.sleep(_PAUSE_S)
            self.acknowledged += 1
            self._waits_ms.append((time.monotonic() - began_s) * 1000)
            due_s += _TICKS
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        if self._streams is not None:
            self._streams[1].close()

    def _requests(self) -> Iterator[bytes]:
        # Several servers share a store: none of them is known to number the keys first.
        return requests(self.number, _TICKS, fields={"keys": KEYS})

    async def _sent(self, request: bytes) -> bool:
        try:
            return await asyncio.wait_for(self._exchange(request), _ANSWER_S)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            self._streams = None
            return False

    async def _exchange(self, request: bytes) -> bool:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        return head[9:12] == b"200"


async def _load(servers: list[_Server], hosts: list[_Host], every_s: float, until_s: float) -> None:
    senders = asyncio.gather(*(host.run() for host in hosts))
    turn = 0
    while time.monotonic() + every_s < until_s:
        await asyncio.sleep(every_s)
        server = servers[turn % len(servers)]
        server.kill()
        await asyncio.to_thread(server.start)
        turn += 1
    await senders


def measure(hosts: int, seconds: float, every_s: float, folder: str) -> list[str]:
    """Run it, and describe the result in lines."""
    clickhouse = ClickHouseServer(Path(folder) / "clickhouse")
    metadata_server = postgresql.temporary_server(durable=True)
    metadata = metadata_server.make("fleet")
    servers = [_Server(number, Path(folder), str(clickhouse.address()), metadata) for number in range(2)]
    waits_ms: list[float] = []
    until_s = time.monotonic() + seconds
    senders = [_Host(number, [each.port for each in servers], until_s, waits_ms) for number in range(hosts)]
    before_s = _all_cpu_s(metadata_server.folder)
    try:
        asyncio.run(_load(servers, senders, every_s, until_s))
        assert clickhouse.process is not None
        engines_s = cpu_s(clickhouse.process.pid), _all_cpu_s(metadata_server.folder) - before_s
        for server in servers:
            server.close()
        with ClickHouseStore(clickhouse.address(), os.path.join(folder, "check"), PROMPT) as store:
            missing, surplus, samples = _compared(store, metadata, senders)
    finally:
        for server in servers:
            server.close()
        clickhouse.stop()
    acknowledged = sum(host.acknowledged for host in senders)
    p50, p99 = np.percentile(waits_ms, (50, 99))
    parts = {"servers": sum(server.cpu_s for server in servers), "ClickHouse": engines_s[0]}
    parts["PostgreSQL"] = engines_s[1]
    return [
        f"{hosts:,} hosts × {len(KEYS)} metrics at 1 Hz for {seconds:.0f} s through 2 servers, "
        f"{sum(each.kills for each in servers)} times one was killed (kill -9):",
        f"- acknowledged requests of {_TICKS} ticks: {acknowledged:,}; missing: {missing}; "
        f"samples read twice: {surplus}; samples {samples:,}, expected {acknowledged * _TICKS * len(KEYS):,}",
        f"- sent again: {sum(host.resent for host in senders):,}",
        f"- until acknowledged, with repetitions: p50 {p50:.0f} ms, p99 {p99:.0f} ms, "
        f"at most {max(waits_ms):.0f} ms",
        f"- CPU: {sum(server.start_cpu_s for server in servers):.0f} s for starts of servers; after that "
        + ", ".join(
            f"{name} {spent_s:.0f} s ({spent_s / samples * 1e6:.2f} µs a value, "
            f"{spent_s / acknowledged * 1e3:.2f} ms a request)"
            for name, spent_s in parts.items()
        ),
    ]


def _all_cpu_s(folder: str) -> float:
    """CPU time of all processes of PostgreSQL, also of those that have ended."""
    main = psutil.Process(int(Path(folder, "data", "postmaster.pid").read_text().split()[0]))
    times = main.cpu_times()
    ended_s = times.children_user + times.children_system
    return float(ended_s + sum(cpu_s(process.pid) for process in (main, *main.children())))


def _compared(store: ClickHouseStore, metadata: str, senders: list[_Host]) -> tuple[int, int, int]:
    """Batches that are missing, samples that are read more than once, and all samples."""
    missing = surplus = samples = 0
    with open_metadata_store(metadata) as metadata_store:
        for host in senders:
            run = metadata_store.runs.find(f"bench-{host.number}", time.time_ns() // 1_000_000)
            if run is None:
                missing += host.acknowledged
                continue
            [writer] = metadata_store.writers.of_runs([run.id])[run.id]
            [stored] = store.stored_batches(writer.lane_id).values()
            last = stored[0][1] + 1 if stored[0][0] == 0 else 0
            missing += max(0, host.acknowledged - last)
            read = store.read([writer.lane_id], None, 0, END_OF_TIME_MS - 1)
            count = sum(len(series.t) for series in read.series)
            surplus += max(0, count - host.acknowledged * _TICKS * len(KEYS))
            samples += count
    return missing, surplus, samples
