"""Connections of the run's processes to the monitor.

Unix sockets, with one JSON object per line in either direction. The process that starts the monitor passes it
one end of a connection, and a listening socket for the others.

From a process: `{"op": "attach", "pid": …, "role": …, "rank": …, "writer": …}`,
`{"op": "finish", "pid": …, "exit_code": …, "closing": …}`, and
`{"op": "exited", "pid": …, "exit_code": …, "signal": …}` from a parent that has waited for its child.
To a process, when its last sample is written: `{"op": "done", "state": …}`.

Only connections of our own user are accepted. `_socket`, the C half of `socket`, is loaded when there is one
to accept: it costs 0.16 MB, and most runs have a single process. The Python half would cost 1 MB.
"""

from __future__ import annotations

import os

from runvitals.base.json_codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

_MAX_LINE_LENGTH = 256 * 1024
_MAX_AT_ONCE = 64  # connections accepted per call: other users may open them without end


class ClientConnection:
    """The connection of one process of this run.

    Args:
        fd: descriptor of a connected socket; closed by `close`.
        pid: of the process, not from a message of it.
    """

    __slots__ = ("_buffer", "fd", "pid")

    def __init__(self, fd: int, pid: int) -> None:
        os.set_blocking(fd, False)
        # A tool with a copy of it would hide the monitor's death from the process.
        os.set_inheritable(fd, False)
        self.fd = fd
        self.pid = pid
        self._buffer = b""

    def messages(self) -> list[dict[str, Any]] | None:
        """Return the messages received since the last call; None if the client has disconnected.

        Raises:
            ValueError: the client sent something other than one JSON object per line.
        """
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > _MAX_LINE_LENGTH:
            raise ValueError(f"a line of more than {_MAX_LINE_LENGTH} bytes")
        messages = [loads(line) for line in lines if line]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("not a JSON object")
        return messages

    def send(self, message: dict[str, object]) -> None:
        """Send a message without waiting. It is dropped if the client has gone or does not read."""
        try:
            os.write(self.fd, dumps(message) + b"\n")
        except OSError:
            return

    def close(self) -> None:
        """Release what is open."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Listener:
    """The listening socket.

    Args:
        fd: its descriptor, which this object owns.
    """

    __slots__ = ("_sock", "fd")

    def __init__(self, fd: int) -> None:
        # A tool with a copy of it would still accept the connections of the run if the monitor were killed.
        os.set_inheritable(fd, False)
        self._sock: _socket.socket | None = None
        self.fd = fd

    def accept(self) -> ClientConnection | None:
        """Accept the next connection of our own user; None if there is none.

        Raises:
            OSError: no descriptor is free.
        """
        import _socket

        from runvitals.monitoring.monitor.peer import peer_credentials

        if self._sock is None:
            self._sock = _socket.socket(fileno=self.fd)
            self._sock.setblocking(False)
        for _ in range(_MAX_AT_ONCE):
            try:
                fd, _ = self._sock._accept()  # type: ignore[attr-defined]  # the C half of `socket.accept`
            except (BlockingIOError, ConnectionAbortedError):
                return None
            sock = _socket.socket(fileno=fd)
            pid, uid = peer_credentials(sock)
            sock.detach()
            if uid == os.geteuid():
                return ClientConnection(fd, pid)
            os.close(fd)
        return None

    def close(self) -> None:
        """Release what is open."""
        if self._sock is not None:
            self._sock.detach()
            self._sock = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
