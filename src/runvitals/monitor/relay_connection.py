"""The monitor's connection to the relay, the process that delivers journals to destinations. There is one
relay per user and data folder.

As with the monitor itself (`launch.py`), the first process that needs the relay binds its address and passes
the listening socket to the relay it starts. A run without destinations does not import this module.

To the relay: `{"op": "serve", "run", "destinations": […], "cwd", "environ": {…}}`; the run is running while
    the
connection is open. From the relay: `{"op": "stop", "text"}` if a user requested at a destination that the run
stop; `{"op": "event", "name", "text"}` for the run's journal.
"""

from __future__ import annotations

import _socket
import os
import sys
import zlib

from runvitals.backoff import Backoff
from runvitals.journal.json_codec import dumps, loads
from runvitals.monitor import spawn
from runvitals.monitor.socket_address import NO_SIGNAL, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

LISTENER_FD = 3  # the listening socket, in a relay
_HIGHEST_INHERITED_FD = 5  # a monitor's spec, listener and trainer, which a relay must not keep open
# A relay that dies is replaced immediately, then after 1, 2, 4 … 60 s. Once a relay has run for a minute, the
# delay starts over.
_LONGEST_WAIT_S = 60.0
_STABLE_S = 60.0
_URLS = {"http", "https"}
_SERVER_VARIABLES = ("RUNVITALS_SERVER", "RUNVITALS_TOKEN")


def address(directory: str) -> Address:
    """The address of the relay of a data folder."""
    directory = os.path.abspath(directory)
    return Address(f"relay-{zlib.crc32(os.fsencode(directory)):08x}", directory)


def call(directory: str) -> _socket.socket | None:
    """A connection to the relay of a data folder; None if this user has none."""
    return address(directory).call()


def start(directory: str, listener: _socket.socket) -> None:
    """Start a relay on a listening socket. It is detached and outlives this process. Takes 1 to 2 ms.

    Raises:
        OSError: it could not be started.
    """
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Without the working directory, where a user's file may have the name of a module.
    boot = (
        f"import sys; sys.path = [p for p in sys.path if p and p != {source!r}] + [{source!r}]; "
        "from runvitals.relay.main import main; main()"
    )
    command = [sys.executable, "-c", boot, "runvitals-relay", os.path.abspath(directory)]
    import fcntl

    # Above LISTENER_FD, because dup2 of a descriptor to itself would keep its close-on-exec flag.
    high = fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD_CLOEXEC, 64)
    actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, high, LISTENER_FD)]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in range(LISTENER_FD + 1, _HIGHEST_INHERITED_FD + 1)]
    try:
        spawn.start(command, actions, os.environ)
    finally:
        os.close(high)


def own_variables(destinations: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that belong to destinations: those that start with a destination's name, and
    for a URL, which is a runvitals server, `RUNVITALS_SERVER` and `RUNVITALS_TOKEN`. `RUNVITALS_DESTINATIONS`
    is added, because it shows which servers the credentials in these variables belong to.

    Example:
        >>> own_variables(["mlflow:http://host:5000"], {"MLFLOW_TRACKING_USERNAME": "me", "HOME": "/home/me"})
        {'MLFLOW_TRACKING_USERNAME': 'me', 'RUNVITALS_DESTINATIONS': '["mlflow:http://host:5000"]'}
    """
    texts = list(destinations)
    names = {text.partition(":")[0] for text in texts}
    prefixes = tuple(f"{name.upper().replace('-', '_')}_" for name in names - _URLS)
    server_variables = _SERVER_VARIABLES if names & _URLS else ()
    own = {
        name: text for name, text in environ.items() if name in server_variables or name.startswith(prefixes)
    }
    if names - _URLS:
        own["RUNVITALS_DESTINATIONS"] = dumps(texts).decode()
    return own


def connect(directory: str) -> _socket.socket | None:
    """A connection to the relay of a data folder, which is started if necessary; None if that failed."""
    sock = call(directory)
    if sock is not None:
        return sock
    try:
        listener = address(directory).bind()
        if listener is not None:
            try:
                start(directory, listener)
            finally:
                listener.close()
    except OSError:
        return None  # no process can be started now; the journal keeps the data
    return call(directory)


class RelayLine:
    """A run's connection to the relay, which is started if there is none, and again if it dies.

    Args:
        directory: the data folder.
        run: the run's id.
        destinations: the run's destinations.
        cwd: the base of relative paths in destinations.
        reach: connects to the relay of a data folder, which it starts if necessary; returns None if that
            failed.

    Attributes:
        fd: the descriptor to poll; -1 while there is no connection.

    Example:
        >>> line = RelayLine("/data", "abc", ["http://127.0.0.1:8900"], "/home/me")
        >>> line.mind(time.monotonic())     # at every tick
        >>> line.messages()                 # when `fd` is readable
        [{'op': 'stop', 'text': 'requested on http://127.0.0.1:8900'}]
    """

    __slots__ = (
        "_backoff",
        "_buffer",
        "_connected_s",
        "_directory",
        "_reach",
        "_serve_message",
        "_sock",
        "_unsent",
        "fd",
    )

    def __init__(
        self,
        directory: str,
        run: str,
        destinations: list[str],
        cwd: str,
        reach: Callable[[str], _socket.socket | None] | None = None,
    ) -> None:
        self._directory = directory
        self._reach = reach or connect
        # Only in the memory of the two processes: it contains passwords.
        environ = own_variables(destinations, os.environ)
        self._serve_message = {
            "op": "serve",
            "run": run,
            "destinations": destinations,
            "cwd": cwd,
            "environ": environ,
        }
        self._sock: _socket.socket | None = None
        self._buffer = self._unsent = b""
        self._backoff = Backoff(1.0, _LONGEST_WAIT_S, at_once=1)
        self._connected_s = 0.0
        self.fd = -1

    def mind(self, now_s: float) -> bool:
        """Reconnect if there is no connection and an attempt is due; True if a new one was made. While there
        is a connection, this costs one comparison.
        """
        if self._sock is not None:
            if self._unsent:
                self._send()
            return False
        if self._connected_s:
            if now_s - self._connected_s > _STABLE_S:
                self._backoff.worked()
            self._connected_s = 0.0
        if not self._backoff.due(now_s):
            return False
        self._backoff.failed(now_s)
        sock = self._reach(self._directory)
        if sock is None:
            return False
        sock.setblocking(False)
        self._sock, self.fd, self._connected_s = sock, sock.fileno(), now_s
        self._unsent = dumps(self._serve_message) + b"\n"
        self._send()
        return self._sock is not None

    def _send(self) -> None:
        """Send the rest of the message; what the socket does not accept now is sent at the next tick."""
        assert self._sock is not None
        try:
            while self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def messages(self) -> list[Mapping[str, Any]]:
        """The messages received. If the relay has exited, `fd` is -1.

        Raises:
            ValueError: a line is not a JSON object.
        """
        assert self._sock is not None
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        messages = [loads(line) for line in lines if line]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("a message that is not a JSON object")
        return messages

    def close(self) -> None:
        """Close the connection: the run is no longer running on this host."""
        if self._sock is not None:
            self._sock.close()
            self._sock, self.fd, self._buffer, self._unsent = None, -1, b"", b""


def read_answer(sock: _socket.socket) -> dict[str, Any] | None:
    """One message from a relay; None if it has exited or the socket timed out."""
    answer = b""
    while b"\n" not in answer:
        try:
            data = sock.recv(65536)
        except OSError:
            return None
        if not data:
            return None
        answer += data
    value = loads(answer.partition(b"\n")[0])
    return value if isinstance(value, dict) else None


def ask(directory: str, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
    """Send a query and return the relay's reply; None if there is no relay, or no reply in time."""
    sock = call(directory)
    if sock is None:
        return None
    sock.settimeout(timeout_s)
    try:
        sock.sendall(dumps(message) + b"\n", NO_SIGNAL)
        return read_answer(sock)
    except OSError:
        return None
    finally:
        sock.close()
