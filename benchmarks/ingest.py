"""What the shared server costs as clients see it: durable points a second, CPU a point, time to acknowledge.

    scripts/bench ingest [--seconds 8] [--hosts 1000]

A real `runvitals server` on loopback, and clients in this process, each of which sends a request when the
last was acknowledged. With `--hosts`, so many clients send 5 ticks of 60 values every 5 s instead. Clients
and server share the machine's cores: points a second are a lower bound, CPU a point is the server's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np

from benchmarks.store.measure import cpu_s, memory_mb
from runvitals.store import body

KEYS = [f"metric.{number}" for number in range(60)]
SHAPES = ((10, 1), (10, 16), (10, 64), (1, 16), (1, 64))
_POST = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/msgpack\r\n"


@dataclass
class Outcome:
    """Of one load: waits in ms, and what the server spent."""

    waits_ms: list[float]
    refused: int
    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8, help="for each load (default: 8)")
    parser.add_argument("--hosts", type=int, help="simulate so many hosts instead")
    options = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}\n")
    print(
        "| ticks x values, connections | points/s | us CPU/point | us CPU/request | ack p50, ms | p99 | max |"
    )
    print("|---|---|---|---|---|---|---|")
    shapes = SHAPES if options.hosts is None else ((5, options.hosts),)
    for ticks, connections in shapes:
        with tempfile.TemporaryDirectory() as folder, serving(folder) as (pid, port):
            pause_s = 0.0 if options.hosts is None else 5.0
            outcome = asyncio.run(load(pid, port, ticks, connections, options.seconds, pause_s))
            report(ticks, connections, outcome, memory_mb(pid))


@contextmanager
def serving(folder: str) -> Iterator[tuple[int, int]]:
    """The server's pid and port."""
    command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0", "--store", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[1]
        yield process.pid, int(address.rstrip("/").rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


async def load(pid: int, port: int, ticks: int, connections: int, seconds: float, pause_s: float) -> Outcome:
    """All clients at once; the first second is not counted."""
    waits: list[float] = []
    refused = 0
    start_s = time.monotonic() + 1
    end_s = start_s + seconds

    async def client(number: int) -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(random.random() * pause_s)
        for request in requests(number, ticks):
            began_s = time.monotonic()
            if began_s >= end_s:
                break
            writer.write(request)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            refused += not head.startswith(b"HTTP/1.1 200")
            if began_s >= start_s:
                waits.append((time.monotonic() - began_s) * 1000)
            if pause_s:
                await asyncio.sleep(max(0.0, pause_s - (time.monotonic() - began_s)))
        writer.close()
        await writer.wait_closed()

    clients = [asyncio.create_task(client(number)) for number in range(connections)]
    await asyncio.sleep(1)
    before_s = cpu_s(pid)
    await asyncio.sleep(seconds)
    spent_s = cpu_s(pid) - before_s
    await asyncio.gather(*clients)
    return Outcome(waits, refused, seconds, spent_s)


def requests(client: int, ticks: int) -> Iterator[bytes]:
    """What one client sends: a random walk in steps of 0.1, as a monitor's gauges are, packed with zstd."""
    chance = np.random.default_rng(client)
    start_ms = time.time_ns() // 1_000_000 - 3_600_000
    steps = chance.integers(-10, 11, (20, ticks, len(KEYS)))
    walks = np.cumsum(steps, axis=1).astype(np.float64) / 10
    seq = 0
    while True:
        t = start_ms + 1000 * np.arange(seq * ticks, (seq + 1) * ticks, dtype=np.int64)
        said = {
            "run": f"bench-{client}",
            "writer": f"monitor.node{client}.1",
            "seq": seq,
            "keys": KEYS,
            "body": body.pack(t, walks[seq % len(walks)]),
        }
        content = msgspec.msgpack.encode(said)
        yield _POST + b"content-length: %d\r\n\r\n" % len(content) + content
        seq += 1


def report(ticks: int, connections: int, outcome: Outcome, rss_mb: float) -> None:
    requests_done = len(outcome.waits_ms)
    points = requests_done * ticks * len(KEYS)
    p50, p99 = np.percentile(outcome.waits_ms, [50, 99])
    print(
        f"| {ticks}x{len(KEYS)}, {connections} | {points / outcome.wall_s:,.0f} "
        f"| {outcome.cpu_s / points * 1e6:.2f} | {outcome.cpu_s / requests_done * 1e6:.0f} "
        f"| {p50:.1f} | {p99:.1f} | {max(outcome.waits_ms):.0f} |"
        f" {rss_mb:.0f} MB" + (f" {outcome.refused} refused" if outcome.refused else ""),
        flush=True,
    )


if __name__ == "__main__":
    main()
