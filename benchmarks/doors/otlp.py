"""OTLP over HTTP, protocol buffers without compression. VictoriaMetrics of Debian 12 does not receive it.

Each client is a program on a host of its own: its requests have 1,000 points, one of each series, with two
attributes. A fifth of them are network interfaces, which become our keys; the others keep their names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.doors.peer import Door, Peer
from benchmarks.ingest import server
from runvitals.base.protobuf import double, fixed64, text, uint

METRICS, POINTS = 50, 20
_HOUR_NS = 3600 * 10**9
_POST = (
    b"POST /v1/metrics HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
    b"content-length: "
)


def door() -> Door:
    return Door("otlp", "point", METRICS * POINTS, (1, 4, 16), [Peer("runvitals", server.serving, requests)])


def requests(client: int) -> Iterator[bytes]:
    """The requests of a client, a second apart."""
    time_ns = time.time_ns() - _HOUR_NS
    while True:
        message = body(client, time_ns)
        yield _POST + b"%d\r\n\r\n" % len(message) + message
        time_ns += 10**9


def body(client: int, time_ns: int) -> bytes:
    """A request, as OpenTelemetry's classes encode it."""
    about = {"host.name": f"node{client}", "runvitals.run": f"bench-{client}"}
    resource = b"".join(_attribute(1, name, value) for name, value in about.items())
    metrics = b"".join(_metric(number, time_ns) for number in range(METRICS))
    return text(1, text(1, resource) + text(2, text(1, text(1, "bench")) + metrics))


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
    return text(2, text(1, name) + text(3, unit) + text(7, points + uint(2, 2) + uint(3, 1)))


def _attribute(number: int, name: str, value: str) -> bytes:
    return text(number, text(1, name) + text(2, text(1, value)))
