"""The peers that a door is compared with: servers that receive the same rows from the same kind of client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

Requests = Callable[[int], Iterator[bytes]]


class Peer(NamedTuple):
    """A server that receives the requests of a door's clients.

    Args:
        name: of the server.
        serving: runs it on a folder; yields its pid, of which CPU time is measured, and its port.
        requests: the endless HTTP/1.1 requests of a client, by its number; they are acknowledged by 200 or
            204 with a Content-Length or without a body.
        connected: makes `requests` when they depend on the server, by its port.
    """

    name: str
    serving: Callable[[str], AbstractContextManager[tuple[int, int]]]
    requests: Requests | None = None
    connected: Callable[[int], Requests] | None = None


class Door(NamedTuple):
    """A door, and who receives the same as it.

    Args:
        row: what is counted: "sample", "metric" …
        rows: how many of them a request has.
        connections: numbers of clients that are measured.
        peers: ours is the first. Those that are not installed are left out.
    """

    name: str
    row: str
    rows: int
    connections: Sequence[int]
    peers: Sequence[Peer]
