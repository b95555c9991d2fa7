"""The monitor's door: an inherited listening Unix socket, one JSON object a line in either direction.

From a client: `{"op": "attach", "pid": …, "role": …, "rank": …, "writer": …}`, `{"op": "finish", "pid": …,
"exit_code": …, "closing": …}`,
`{"op": "exited", "pid": …, "exit_code": …, "signal": …}` (a parent that has waited for the command). To a
client, after its process is done and its last sample written: `{"op": "done", "state": …}`.

Only processes of our own user are listened to. `_socket` is the C half of `socket`, whose Python half would
cost 1 MB.
"""

from __future__ import annotations

import _socket
import os

from runvitals.journal.json_codec import dumps, loads
from runvitals.monitor.socket_address import peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_LINE = 256 * 1024
_MOST_AT_ONCE = 64  # connections looked at in one turn: another user's may come without end


class Client:
    """One connection of a process of this run."""

    __slots__ = ("_buffer", "fd", "pid", "sock")

    def __init__(self, sock: _socket.socket, pid: int) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.pid = pid  # as the kernel says, not as the client says
        self._buffer = b""

    def messages(self) -> list[dict[str, Any]] | None:
        """What has come in, or None when the other side has gone.

        Raises:
            ValueError: something that is not one JSON object a line.
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
            raise ValueError("a message that is not a JSON object")
        return messages

    def send(self, message: dict[str, object]) -> None:
        """Tell the client something. One that has gone, or does not read, misses it: nobody waits for a
        client.
        """
        try:
            self.sock.send(dumps(message) + b"\n")
        except OSError:
            return

    def close(self) -> None:
        self.sock.close()


class Door:
    """The listening socket."""

    __slots__ = ("fd", "sock")

    def __init__(self, fd: int) -> None:
        self.sock = _socket.socket(fileno=fd)
        self.sock.setblocking(False)
        self.fd = fd

    def accept(self) -> Client | None:
        """The next connection of our own user, or None when there is none (left)."""
        for _ in range(_MOST_AT_ONCE):
            try:
                fd, _ = self.sock._accept()  # type: ignore[attr-defined]  # what `socket.accept` is made of
            except (BlockingIOError, ConnectionAbortedError):
                return None
            sock = _socket.socket(fileno=fd)
            sock.setblocking(False)
            pid, uid = peer(sock)
            if uid == os.geteuid():
                return Client(sock, pid)
            sock.close()
        return None

    def close(self) -> None:
        self.sock.close()
