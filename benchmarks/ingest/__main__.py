"""Benchmark of the shared server over HTTP: durable points per second, CPU per point, acknowledgement
latency.

    scripts/bench ingest [--seconds 8] [--only ours]
    scripts/bench ingest --hosts 1000 --seconds 600
    scripts/bench ingest --accounts

A real `runvitals server` on loopback, and clients in this process, each of which sends a request when the
last was acknowledged; then the same points to VictoriaMetrics if it is installed. With `--hosts N`, N clients
send 5 ticks of 60 values every 5 s instead. `--accounts` compares servers without and with accounts: both run
in turn, in `--rounds` rounds, and the last table has the median over the rounds of what accounts add.
Clients and server share the machine's cores: points per second are a lower bound, CPU per point is that of
the server process.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.ingest import server, victoria
from benchmarks.ingest.clients import WARM_UP_S, Outcome, load
from benchmarks.ingest.samples import KEYS
from benchmarks.store.measure import cpu_s, memory_mb

SHAPES = tuple((ticks, connections) for ticks in (10, 1) for connections in (1, 16, 64))
PREPARED_PER_SECOND = 3000
"""Requests encoded before the measurement; further ones are encoded during it."""
PAUSE_S = 5.0


class Peer(NamedTuple):
    """A server: its name, how to run it on a folder (yields pid and port), and the requests of a client."""

    name: str
    serving: Callable[[str], AbstractContextManager[tuple[int, int]]]
    requests: Callable[[int, int], Iterator[bytes]]


OURS = Peer("runvitals", server.serving, server.requests)
_WITH_ACCOUNTS = server.WithAccounts()
ACCOUNTS = Peer("runvitals with accounts", _WITH_ACCOUNTS.serving, _WITH_ACCOUNTS.requests)
VICTORIA = Peer("VictoriaMetrics", victoria.serving, victoria.requests)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8, help="duration of each load (default: 8)")
    parser.add_argument("--hosts", type=int, help="simulate this many hosts instead")
    parser.add_argument("--only", choices=("ours",), help="without VictoriaMetrics")
    parser.add_argument("--accounts", action="store_true", help="compare with a server with accounts")
    parser.add_argument("--rounds", type=int, default=5, help="of --accounts (default: 5)")
    options = parser.parse_args()
    peers = [OURS, ACCOUNTS] if options.accounts else [OURS]
    if (
        not options.accounts
        and options.only is None
        and options.hosts is None
        and shutil.which(victoria.PROGRAM)
    ):
        peers.append(VICTORIA)
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    print(
        "| | ticks × values, connections | points/s | µs CPU/point | µs CPU/request "
        "| ack p50, ms | p99 | max | memory, MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    if options.hosts is not None:
        for peer in peers:
            measure(peer, 5, options.hosts, options.seconds, PAUSE_S)
        return
    if options.accounts:
        compare(options.seconds, options.rounds)
        return
    for (ticks, connections), peer in itertools.product(SHAPES, peers):
        measure(peer, ticks, connections, options.seconds)


def compare(seconds: float, rounds: int) -> None:
    """Print what accounts add to the cost of each shape.

    Both servers run in each round, in turns the one or the other first: what else the machine does meanwhile,
    and its clock speed, meets both alike.
    """
    added: dict[tuple[int, int], list[tuple[float, float]]] = {shape: [] for shape in SHAPES}
    for number, shape in itertools.product(range(rounds), SHAPES):
        order = (OURS, ACCOUNTS) if number % 2 == 0 else (ACCOUNTS, OURS)
        results = {peer.name: measure(peer, *shape, seconds) for peer in order}
        without, with_accounts = results[OURS.name], results[ACCOUNTS.name]
        added[shape].append(
            (with_accounts.cpu_us / without.cpu_us - 1, 1 - with_accounts.per_s / without.per_s)
        )
    print("\n| ticks × values, connections | CPU per request with accounts | of the rounds | points/s less |")
    print("|---|---|---|---|")
    for (ticks, connections), pairs in added.items():
        cpu, rate = zip(*pairs, strict=True)
        print(
            f"| {ticks}×{len(KEYS)}, {connections} | {statistics.median(cpu):+.1%} "
            f"| {min(cpu):+.1%} to {max(cpu):+.1%} | {statistics.median(rate):.1%} |"
        )


class Rate(NamedTuple):
    """Requests a second, and CPU time of the server for each."""

    per_s: float
    cpu_us: float


def measure(peer: Peer, ticks: int, connections: int, seconds: float, pause_s: float = 0.0) -> Rate:
    """Start a server, load it, and print the results."""
    count = 0 if pause_s else round(PREPARED_PER_SECOND * (seconds + WARM_UP_S) / connections)
    sources = [peer.requests(number, ticks) for number in range(connections)]
    prepared = [list(itertools.islice(source, count)) for source in sources]
    requests = [itertools.chain(ready, source) for ready, source in zip(prepared, sources, strict=True)]
    with tempfile.TemporaryDirectory() as folder, peer.serving(folder) as (pid, port):
        outcome = load(port, requests, seconds, partial(cpu_s, pid), pause_s)
        report(peer.name, ticks, connections, outcome, memory_mb(pid))
    count = len(outcome.waits_ms)
    return Rate(count / outcome.wall_s, outcome.cpu_s / count * 1e6)


def report(name: str, ticks: int, connections: int, outcome: Outcome, rss_mb: float) -> None:
    acknowledged = len(outcome.waits_ms)
    points = acknowledged * ticks * len(KEYS)
    p50, p99 = np.percentile(outcome.waits_ms, [50, 99])
    print(
        f"| {name} | {ticks}×{len(KEYS)}, {connections} | {points / outcome.wall_s:,.0f} "
        f"| {outcome.cpu_s / points * 1e6:.2f} | {outcome.cpu_s / acknowledged * 1e6:.0f} "
        f"| {p50:.1f} | {p99:.1f} | {max(outcome.waits_ms):.0f} | {rss_mb:.0f} |"
        + (f" {outcome.rejected} rejected" if outcome.rejected else ""),
        flush=True,
    )


if __name__ == "__main__":
    main()
