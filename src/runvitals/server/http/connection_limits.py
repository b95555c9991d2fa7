"""Limits on connections of clients, before anything is known of them."""

from __future__ import annotations

from dataclasses import dataclass

_KIB = 1 << 10


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection, and of all together.

    Args:
        connections: open at the same time; further ones are answered with 503.
        head_bytes: size of a request line with its header fields, and of trailers; beyond it 414 or 431.
        fields: number of header fields.
        silent_s: at the limit of connections, those that have been open this long without a request are
            closed.
        heads_bytes: total size of all incomplete heads that are larger than a few KiB.
        pipelined: requests that a client may send before the previous one is answered.
        head_s: time for a head to arrive, from its beginning or from that of the connection.
        body_s: time for a body to arrive, from the end of the head; for each 256 KiB of a longer one.
        idle_s: time between two requests. It is longer than a minute for clients that send every minute: a
            new connection costs both sides more than a request.
        unread_s: time for a client to read some of a waiting response.
        rejected_s: time for a client to stop sending after a rejection.
    """

    connections: int = 10_000
    head_bytes: int = 64 * _KIB
    fields: int = 128
    silent_s: float = 2.0
    heads_bytes: int = 32 * _KIB * _KIB
    pipelined: int = 32
    head_s: float = 30.0
    body_s: float = 30.0
    idle_s: float = 75.0
    unread_s: float = 30.0
    rejected_s: float = 5.0
