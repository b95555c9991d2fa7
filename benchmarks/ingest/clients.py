"""Clients that send a request, wait until it is acknowledged, and send the next: any number in one thread.

They use plain sockets and send prepared requests, to leave the machine's cores to the server: a request takes
about 30 µs of client CPU.
"""

from __future__ import annotations

import heapq
import random
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

WARM_UP_S = 1.0
_READ_BYTES = 1 << 16


@dataclass
class Outcome:
    """Result of a load.

    Args:
        waits_ms: latency of each acknowledged request.
        rejected: number of other responses.
        wall_s: duration.
        cpu_s: CPU time of the server.
    """

    waits_ms: list[float] = field(default_factory=list)
    rejected: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0


class _Client:
    """One connection."""

    __slots__ = ("_received", "_requests", "sent_s", "socket")

    def __init__(self, port: int, requests: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._requests = requests
        self._received = b""
        self.sent_s = 0.0

    def send(self) -> None:
        """Send the next request, which fits in the socket's buffer."""
        request = next(self._requests)
        self.sent_s = time.monotonic()
        self.socket.sendall(request)

    def receive(self) -> bool | None:
        """Whether the request was acknowledged; None while the response is incomplete."""
        self._received += self.socket.recv(_READ_BYTES)
        head, end, content = self._received.partition(b"\r\n\r\n")
        if not end:
            if not self._received:
                raise ConnectionError("the server closed a connection")
            return None
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        if len(content) < int(length or 0):
            return None
        self._received = b""
        return head[9:12] in (b"200", b"204")


def load(
    port: int,
    requests: Sequence[Iterator[bytes]],
    seconds: float,
    server_cpu_s: Callable[[], float],
    pause_s: float = 0.0,
    warm_up_s: float = WARM_UP_S,
) -> Outcome:
    """Let each client send its requests. What is sent in the first `warm_up_s` is not measured.

    Args:
        requests: an endless iterator of requests per client.
        pause_s: time between the starts of a client's requests; 0: no pause after a response.
        server_cpu_s: returns the CPU time that the server has used so far.
    """
    outcome = Outcome(wall_s=seconds)
    start_s = time.monotonic() + warm_up_s
    end_s = start_s + seconds
    clients = [_Client(port, iterator) for iterator in requests]
    paused = [(time.monotonic() + random.random() * pause_s, index) for index in range(len(clients))]
    heapq.heapify(paused)
    before_s: float | None = None
    with selectors.DefaultSelector() as selector:
        for index, client in enumerate(clients):
            selector.register(client.socket, selectors.EVENT_READ, index)
        while (now_s := time.monotonic()) < end_s:
            if before_s is None and now_s >= start_s:
                before_s = server_cpu_s()
            while paused and paused[0][0] <= now_s:
                clients[heapq.heappop(paused)[1]].send()
            for key, _ in selector.select(_wait_s(paused, min(start_s, end_s), now_s)):
                client = clients[key.data]
                acknowledged = client.receive()
                if acknowledged is None:
                    continue
                if client.sent_s >= start_s:
                    if acknowledged:
                        outcome.waits_ms.append((time.monotonic() - client.sent_s) * 1000)
                    outcome.rejected += not acknowledged
                if pause_s:
                    heapq.heappush(paused, (client.sent_s + pause_s, key.data))
                else:
                    client.send()
    outcome.cpu_s = server_cpu_s() - (before_s or 0.0)
    for client in clients:
        client.socket.close()
    return outcome


def _wait_s(paused: Sequence[tuple[float, int]], at_latest_s: float, now_s: float) -> float:
    """Return how long to wait for a response: at most until the next client sends."""
    until_s = min(paused[0][0] if paused else now_s + 0.1, max(at_latest_s, now_s + 0.1))
    return max(until_s - now_s, 0.0)
