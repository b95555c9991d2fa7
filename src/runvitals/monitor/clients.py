"""Connections of the run's processes to the monitor: an inherited listening Unix socket, with one JSON object
per line in either direction.

From a process: `{"op": "attach", "pid": …, "role": …, "rank": …, "writer": …}`,
`{"op": "finish", "pid": …, "exit_code": …, "closing": …}`, and
`{"op": "exited", "pid": …, "exit_code": …, "signal": …}` from a parent that has waited for its child.
To a process, when its last sample is written: `{"op": "done", "state": …}`.

Only connections of our own user are accepted. Uses `_socket`, the C half of `socket`, because the Python half
would cost 1 MB.
"""

from __future__ import annotations

import _socket
import os

from runvitals.journal.json_codec import dumps, loads
from runvitals.monitor.peer import peer_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_LINE = 256 * 1024
_MOST_AT_ONCE = 64  # connections accepted per call: other users may open them without end


class ClientConnection:
    """The connection of one process of this run."""

    __slots__ = ("_buffer", "fd", "pid", "sock")

    def __init__(self, sock: _socket.socket, pid: int) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.pid = pid  # as reported by the kernel, not by the client
        self._buffer = b""

    def messages(self) -> list[dict[str, Any]] | None:
        """The messages received since the last call; None if the client has disconnected.

        Raises:
            ValueError: the client sent something other than one JSON object per line.
        """
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > _LONGEST_LINE:
            raise ValueError(f"a line of more than {_LONGEST_LINE} bytes")
        messages = [loads(line) for line in lines if line]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("not a JSON object")
        return messages

    def send(self, message: dict[str, object]) -> None:
        """Send a message without waiting. It is dropped if the client has gone or does not read."""
        try:
            self.sock.send(dumps(message) + b"\n")
        except OSError:
            return

    def close(self) -> None:
        self.sock.close()


class Listener:
    """The listening socket."""

    __slots__ = ("fd", "sock")

    def __init__(self, fd: int) -> None:
        self.sock = _socket.socket(fileno=fd)
        self.sock.setblocking(False)
        self.fd = fd

    def accept(self) -> ClientConnection | None:
        """Accept the next connection of our own user; None if there is none.

        Raises:
            OSError: no descriptor is free.
        """
        for _ in range(_MOST_AT_ONCE):
            try:
                fd, _ = self.sock._accept()  # type: ignore[attr-defined]  # the C half of `socket.accept`
            except (BlockingIOError, ConnectionAbortedError):
                return None
            sock = _socket.socket(fileno=fd)
            sock.setblocking(False)
            pid, uid = peer_credentials(sock)
            if uid == os.geteuid():
                return ClientConnection(sock, pid)
            sock.close()
        return None

    def close(self) -> None:
        self.sock.close()
