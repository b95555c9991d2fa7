"""OTLP over HTTP: points a second, CPU of the server for a point, and how long a request takes.

    python -m benchmarks.doors.otlp [--seconds 20]

Senders export the same series again and again, each for a run and host of its own: 1,000 points with two
attributes each, of which a fifth become our keys and the others keep their names. `runvitals server` is a
process of its own, whose CPU is user and system; senders encode a request before its time is taken.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from runvitals.protobuf import double, fixed64, text, uint

METRICS, POINTS = 50, 20
"""Of a request: metrics, and points of each."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Result:
    """What was measured of one kind of request."""

    points: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    acks_ms: list[float] = field(default_factory=list)

    def row(self, title: str) -> str:
        ordered = sorted(self.acks_ms)
        late = ordered[int(len(ordered) * 0.99)]
        cpu_us = self.cpu_s / self.points * 1e6
        rate, middle = self.points / self.seconds, statistics.median(ordered)
        return f"| {title} | {rate:,.0f} | {cpu_us:.2f} µs | {middle:.1f} ms | {late:.1f} ms |"


def body(sender: int, time_ns: int) -> bytes:
    """A request of one sender, as OpenTelemetry's classes encode it."""
    resource = b"".join(
        _attribute(1, name, value)
        for name, value in (("host.name", f"node{sender}"), ("runvitals.run", f"bench-{sender}"))
    )
    found = [_metric(number, time_ns) for number in range(METRICS)]
    return text(1, text(1, resource) + text(2, text(1, text(1, "bench")) + b"".join(found)))


def _metric(number: int, time_ns: int) -> bytes:
    ours = number % 5 == 0
    name, unit = ("system.network.io", "By") if ours else (f"app.queue.{number}", "1")
    other = "network.io.direction" if ours else "state"
    points = b"".join(
        text(
            1,
            fixed64(2, 1)
            + fixed64(3, time_ns)
            + double(4, point + time_ns % 1e9)
            + _attribute(7, "network.interface.name", f"eth{number}x{point}")
            + _attribute(7, other, "transmit"),
        )
        for point in range(POINTS)
    )
    about = text(1, name) + text(3, unit)
    return text(2, about + text(7, points + uint(2, 2) + uint(3, 1)))


def _attribute(number: int, name: str, value: str) -> bytes:
    return text(number, text(1, name) + text(2, text(1, value)))


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """A server with an empty store: its port and process id."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0", "--store", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None, "the server did not start"
            try:
                yield int(found[1]), process.pid
            finally:
                process.terminate()


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def send(port: int, sender: int, until_s: float, packed: Callable[[bytes], bytes], result: Result) -> None:
    """Send requests until a time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/x-protobuf"}
    if packed is not bytes:
        headers["Content-Encoding"] = "gzip"
    first_ns = time.time_ns() - 3600 * 10**9
    number = 0
    while time.monotonic() < until_s:
        sent = packed(body(sender, first_ns + number * 10**9))
        began_s = time.monotonic()
        connection.request("POST", "/v1/metrics", sent, headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        result.acks_ms.append((time.monotonic() - began_s) * 1000)
        result.points += METRICS * POINTS
        number += 1
    connection.close()


def measure(senders: int, seconds: float, packed: Callable[[bytes], bytes]) -> Result:
    """Send for some seconds, after a request of each sender that is not counted."""
    with server() as (port, pid):
        for sender in range(senders):
            send(port, sender, time.monotonic() + 0.01, packed, Result())
        results = [Result() for _ in range(senders)]
        began_s, before_s = time.monotonic(), cpu_s(pid)
        threads = [
            threading.Thread(target=send, args=(port, number, began_s + seconds, packed, result))
            for number, result in enumerate(results)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        total = Result(seconds=time.monotonic() - began_s, cpu_s=cpu_s(pid) - before_s)
    for result in results:
        total.points += result.points
        total.acks_ms += result.acks_ms
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each row; default: 20")
    options = parser.parse_args()
    print("| OTLP over HTTP, 1,000 points a request | points/s | server CPU a point | ack, median | 99 % |")
    print("|---|---|---|---|---|")
    packing: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (("plain", bytes), ("gzip", gzip.compress))
    for title, packed in packing:
        for senders in (1, 8):
            print(measure(senders, options.seconds, packed).row(f"{title}, {senders} at once"), flush=True)


if __name__ == "__main__":
    main()
