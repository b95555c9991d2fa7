"""Clients that send a request, wait until it is acknowledged, and send the next: any number in one thread.

They speak HTTP over bare sockets, and what they send was made before the clock runs, so that the machine's
cores are left to the server: a request costs them some 30 µs.
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
_MOST_READ = 1 << 16


@dataclass
class Outcome:
    """Of one load.

    Args:
        waits_ms: from the request to its acknowledgement, of those that were taken in.
        refused: other answers.
        cpu_s: what the server spent meanwhile.
    """

    waits_ms: list[float] = field(default_factory=list)
    refused: int = 0
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
        """The next request; it is small enough for the socket's buffer."""
        request = next(self._requests)
        self.sent_s = time.monotonic()
        self.socket.sendall(request)

    def receive(self) -> bool | None:
        """Whether the request was taken in; None while its answer is not whole."""
        self._received += self.socket.recv(_MOST_READ)
        head, end, content = self._received.partition(b"\r\n\r\n")
        if not end:
            if not self._received:
                raise ConnectionError("the server has closed a connection")
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
) -> Outcome:
    """Let each client send its requests. The first second is not counted.

    Args:
        requests: what each client sends, without an end.
        pause_s: between the beginnings of a client's requests; 0: the next one at once.
        server_cpu_s: the CPU time that the server has used so far.
    """
    outcome = Outcome(wall_s=seconds)
    begin_s = time.monotonic() + WARM_UP_S
    end_s = begin_s + seconds
    clients = [_Client(port, one) for one in requests]
    paused = [(time.monotonic() + random.random() * pause_s, place) for place in range(len(clients))]
    heapq.heapify(paused)
    before_s: float | None = None
    with selectors.DefaultSelector() as selector:
        for place, client in enumerate(clients):
            selector.register(client.socket, selectors.EVENT_READ, place)
        while (now_s := time.monotonic()) < end_s:
            if before_s is None and now_s >= begin_s:
                before_s = server_cpu_s()
            while paused and paused[0][0] <= now_s:
                clients[heapq.heappop(paused)[1]].send()
            for key, _ in selector.select(_wait_s(paused, min(begin_s, end_s), now_s)):
                client = clients[key.data]
                taken_in = client.receive()
                if taken_in is None:
                    continue
                if client.sent_s >= begin_s:
                    if taken_in:
                        outcome.waits_ms.append((time.monotonic() - client.sent_s) * 1000)
                    outcome.refused += not taken_in
                if pause_s:
                    heapq.heappush(paused, (client.sent_s + pause_s, key.data))
                else:
                    client.send()
    outcome.cpu_s = server_cpu_s() - (before_s or 0.0)
    for client in clients:
        client.socket.close()
    return outcome


def _wait_s(paused: Sequence[tuple[float, int]], at_latest_s: float, now_s: float) -> float:
    """How long to wait for an answer: no longer than until the next client sends."""
    until_s = min(paused[0][0] if paused else now_s + 0.1, max(at_latest_s, now_s + 0.1))
    return max(until_s - now_s, 0.0)
