"""The relay's side of a connection from a monitor, or from a process that sends a query.

Messages are JSON objects, one per line; `monitoring/monitor/relay_connection.py` is the other side.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from runvitals.base.json_codec import dumps, loads

_MAX_LINE_BYTES = 16 * 1024 * 1024


class RelayClient:
    """A connection from a client of the relay.

    Attributes:
        sock: the socket, non-blocking.
        runs: ids of the runs whose monitor uses this connection. They are running while it is open.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.runs: set[str] = set()
        self._buffer = b""
        self._lock = threading.Lock()

    def messages(self) -> list[dict[str, Any]] | None:
        """Return the messages received; None if the connection was closed or sent an invalid message."""
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if not data or len(self._buffer) > _MAX_LINE_BYTES:
            return None
        try:
            messages = [loads(line) for line in lines if line]
        except ValueError:
            return None
        return messages if all(isinstance(message, dict) for message in messages) else None

    def send(self, message: dict[str, object]) -> None:
        """Send a message. It is dropped if the client has disconnected or does not read."""
        with self._lock:
            try:
                self.sock.sendall(dumps(message) + b"\n")
            except OSError:
                return
