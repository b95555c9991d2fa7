"""Benchmark of the doors: rows per second, CPU per row, acknowledgement latency, beside other servers.

    scripts/bench doors [--seconds 8] [--door remote_write]

A real `runvitals server` on loopback, and clients in this process, each of which sends a request when the
last was acknowledged; then the same rows to the other servers of the door that are installed. Clients and
server share the machine's cores: rows per second are a lower bound, CPU per row is that of the server.

A door is a module of this package with a function `door()`, listed in `DOORS`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from collections.abc import Callable
from functools import partial

import numpy as np
import psutil

from benchmarks.doors import log_batch, otlp, remote_write, wandb_history
from benchmarks.doors.peer import Door, Peer
from benchmarks.ingest.clients import load
from benchmarks.store.measure import cpu_s, memory_mb

DOORS: dict[str, Callable[[], Door]] = {
    "remote_write": remote_write.door,
    "otlp": otlp.door,
    "wandb_history": wandb_history.door,
    "mlflow_one_key": log_batch.one_key,
    "mlflow_many_keys": log_batch.many_keys,
}
WARM_UP_S = 5.0
"""Runs and series are registered once, which is not what is measured."""
PREPARED = 300
"""Requests of a client encoded before the measurement; further ones are encoded during it."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8, help="duration of each load (default: 8)")
    parser.add_argument("--door", choices=tuple(DOORS), action="append", help="only this one; repeatable")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    print("| door | server | connections | rows/s | µs CPU/row | × ours | ack p50, ms | p99 | memory, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.door or DOORS:
        door = DOORS[name]()
        for connections in door.connections:
            ours: float | None = None
            for peer in door.peers:
                result = measure(door, peer, connections, options.seconds, ours)
                ours = ours or result


def measure(door: Door, peer: Peer, connections: int, seconds: float, ours: float | None) -> float:
    """Start a server, load it, and print the results. Returns the CPU time per row, µs."""
    with tempfile.TemporaryDirectory() as folder, peer.serving(folder) as (pid, port):
        of_client = peer.requests if peer.connected is None else peer.connected(port)
        assert of_client is not None
        sources = [of_client(number) for number in range(connections)]
        prepared = [list(itertools.islice(source, PREPARED)) for source in sources]
        requests = [itertools.chain(ready, source) for ready, source in zip(prepared, sources, strict=True)]
        outcome = load(port, requests, seconds, partial(_cpu_s, pid), warm_up_s=WARM_UP_S)
        rss_mb = sum(memory_mb(child) for child in _processes(pid))
    rows = len(outcome.waits_ms) * door.rows
    if not rows:
        print(f"| {door.name} | {peer.name} | {connections} | none: {outcome.rejected} rejected |")
        return 0.0
    cpu_us = outcome.cpu_s / rows * 1e6
    p50, p99 = np.percentile(outcome.waits_ms, [50, 99])
    print(
        f"| {door.name} | {peer.name} | {connections} × {door.rows} {door.row}s "
        f"| {rows / outcome.wall_s:,.0f} | {cpu_us:.2f} | {f'{cpu_us / ours:.2f}' if ours else '1'} "
        f"| {p50:.1f} | {p99:.1f} | {rss_mb:.0f} |"
        + (f" {outcome.rejected} rejected" if outcome.rejected else ""),
        flush=True,
    )
    return cpu_us


def _processes(pid: int) -> list[int]:
    """A server and its workers."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def _cpu_s(pid: int) -> float:
    return sum(cpu_s(child) for child in _processes(pid))


if __name__ == "__main__":
    main()
