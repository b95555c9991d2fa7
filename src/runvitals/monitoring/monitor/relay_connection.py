"""The monitor's connection to the relay, which delivers journals to destinations.

There is one relay per user and data folder.

As with the monitor itself (`launch.py`), the first process binds the socket and passes the listening
descriptor to the relay that it starts. This module is only loaded in runs with a destination.

To the relay: `{"op": "serve", "run", "destinations": […], "cwd", "environ": {…}, "python", "pythonpath"}`;
the last two say where the training finds packages that the relay may lack. While the connection is open, the
run counts as running. From the relay: `{"op": "stop", "text"}` when a user requested a stop at a destination,
and `{"op": "event", "name", "text"}` for the run's journal.
"""

from __future__ import annotations

import _socket
import os
import sys
import zlib

from runvitals.base.backoff import Backoff
from runvitals.base.json_codec import dumps, loads
from runvitals.monitoring.monitor import spawn
from runvitals.monitoring.monitor.socket_address import NO_SIGNAL, SocketAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

LISTENER_FD = 3  # the listening socket, in a relay
HELPER = "helper"  # argument of a relay that only delivers what the relay of the data folder cannot
_HIGHEST_INHERITED_FD = 5  # a monitor's spec, listener and pidfd, which a relay must not keep open
# A relay that dies is restarted immediately, then after 1, 2, 4 … 60 s. If it ran for longer than a minute,
# earlier failures no longer count.
_MAX_WAIT_S = 60.0
_STABLE_S = 60.0
_URL_SCHEMES = {"http", "https"}
_SERVER_VARIABLES = (
    "RUNVITALS_SERVER",
    "RUNVITALS_TOKEN",
    "RUNVITALS_USERNAME",
    "RUNVITALS_USER_EMAIL",
    "WANDB_API_KEY",
    "WANDB_BASE_URL",
    "WANDB_USERNAME",
    "WANDB_USER_EMAIL",
)


def address(directory: str, python: str = "") -> SocketAddress:
    """Return the address of the relay of a data folder, or of the one with the packages of `python`."""
    directory = os.path.abspath(directory)
    name = f"{zlib.crc32(os.fsencode(directory)):08x}"
    helper = f"-{zlib.crc32(os.fsencode(python)):08x}" if python else ""
    return SocketAddress(f"relay-{name}{helper}", directory)


def connect(directory: str, python: str = "") -> _socket.socket | None:
    """Connect to the relay of a data folder. Returns None if our user has none."""
    return address(directory, python).connect()


def start(
    directory: str, listener: _socket.socket, python: str = "", environ: Mapping[str, str] = os.environ
) -> None:
    """Start a relay on a listening socket, in the background; 1 to 2 ms.

    Args:
        directory: the data folder.
        listener: a bound socket that listens, which the relay inherits.
        python: see `address`.
        environ: the environment of the relay.

    Raises:
        OSError: it could not be started.
    """
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    # Without the working directory, in which a file of the user may have the name of a module.
    boot = (
        f"import sys; sys.path = [p for p in sys.path if p and p != {source!r}] + [{source!r}]; "
        "from runvitals.relay.main import main; main()"
    )
    command = [python or sys.executable, "-c", boot, "runvitals-relay", os.path.abspath(directory)]
    command += [HELPER] if python else []
    import fcntl

    # A copy above LISTENER_FD: `dup2` of a descriptor to itself would leave it close-on-exec.
    high = fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD_CLOEXEC, 64)
    actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, high, LISTENER_FD)]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in range(LISTENER_FD + 1, _HIGHEST_INHERITED_FD + 1)]
    try:
        spawn.start(command, actions, environ)
    finally:
        os.close(high)


def destination_variables(destinations: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that configure these destinations: those that begin with the name of one.

    A plain URL is a runvitals server. It gets `RUNVITALS_TOKEN` together with `RUNVITALS_SERVER`, which names
    the server that the token is for, W&B's variables for the same, and the name of the run's author. The
    other destinations get `RUNVITALS_DESTINATIONS` for the same purpose as `RUNVITALS_SERVER`: their
    credentials are for the servers that it names.

    Example:
        >>> environ = {"MLFLOW_TRACKING_USERNAME": "me", "HOME": "/home/me"}
        >>> destination_variables(["mlflow:http://host:5000"], environ)
        {'MLFLOW_TRACKING_USERNAME': 'me', 'RUNVITALS_DESTINATIONS': '["mlflow:http://host:5000"]'}
    """
    destinations = list(destinations)
    names = {text.partition(":")[0] for text in destinations}
    prefixes = tuple(f"{name.upper().replace('-', '_')}_" for name in names - _URL_SCHEMES)
    exact = _SERVER_VARIABLES if names & _URL_SCHEMES else ()
    variables = {name: text for name, text in environ.items() if name in exact or name.startswith(prefixes)}
    if names - _URL_SCHEMES:
        variables["RUNVITALS_DESTINATIONS"] = dumps(destinations).decode()
    return variables


def connect_or_start(
    directory: str, python: str = "", environ: Mapping[str, str] = os.environ
) -> _socket.socket | None:
    """Connect to the relay of a data folder, and start it if there is none. Returns None if that fails."""
    sock = connect(directory, python)
    if sock is not None:
        return sock
    try:
        listener = address(directory, python).listen()
        if listener is not None:
            try:
                start(directory, listener, python, environ)
            finally:
                listener.close()
    except OSError:
        return None  # for example at the limit on processes; the journal is delivered later
    return connect(directory, python)


class RelayConnection:
    """A run's connection to the relay, which is started if there is none, and restarted if it dies.

    Args:
        directory: the data folder.
        run: the run's id.
        destinations: where the relay delivers the run to.
        cwd: base of relative paths in destinations.
        connect: connects to the relay of a data folder; `connect_or_start`.

    Attributes:
        fd: descriptor to poll; -1 while there is no relay.

    Example:
        >>> connection = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/home/me")
        >>> connection.ensure(time.monotonic())     # at every tick
        >>> connection.messages()                   # when `fd` is readable
        [{'op': 'stop', 'text': 'requested on http://127.0.0.1:8900'}]
    """

    __slots__ = (
        "_backoff",
        "_buffer",
        "_connect",
        "_connected_s",
        "_directory",
        "_request",
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
        connect: Callable[[str], _socket.socket | None] = connect_or_start,
    ) -> None:
        self._directory = directory
        self._connect = connect
        # Sent to the relay and never written to a file: passwords are among them.
        environ = destination_variables(destinations, os.environ)
        self._request = {
            "op": "serve",
            "run": run,
            "destinations": destinations,
            "cwd": cwd,
            "environ": environ,
            "python": sys.executable,
            "pythonpath": os.environ.get("PYTHONPATH", ""),
        }
        self._sock: _socket.socket | None = None
        self._buffer = self._unsent = b""
        self._backoff = Backoff(1.0, _MAX_WAIT_S, at_once=1)
        self._connected_s = 0.0
        self.fd = -1

    def ensure(self, now_s: float) -> bool:
        """Connect to a relay if there is no connection.

        Returns True if a new connection was made. Costs only a comparison if there is one.
        """
        if self._sock is not None:
            if self._unsent:
                self._send()
            return False
        if self._connected_s:
            if now_s - self._connected_s > _STABLE_S:
                self._backoff.note_success()
            self._connected_s = 0.0
        if not self._backoff.due(now_s):
            return False
        self._backoff.note_failure(now_s)
        sock = self._connect(self._directory)
        if sock is None:
            return False
        sock.setblocking(False)
        self._sock, self.fd, self._connected_s = sock, sock.fileno(), now_s
        self._unsent = dumps(self._request) + b"\n"
        self._send()
        return self._sock is not None

    def _send(self) -> None:
        """Send the rest of the request. What the socket does not accept now is sent at the next `ensure`."""
        assert self._sock is not None
        try:
            while self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def messages(self) -> list[Mapping[str, Any]]:
        """Return the messages received since the last call. If the relay has gone, `fd` is -1 afterwards.

        Raises:
            ValueError: the relay sent something other than one JSON object per line.
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
            raise ValueError("not a JSON object")
        return messages

    def close(self) -> None:
        """Disconnect, which tells the relay that the run has ended on this host."""
        if self._sock is not None:
            self._sock.close()
            self._sock, self.fd, self._buffer, self._unsent = None, -1, b"", b""


def read_response(sock: _socket.socket) -> dict[str, Any] | None:
    """Read a message from a relay. Returns None if the relay has gone or the socket's timeout has expired."""
    response = b""
    while b"\n" not in response:
        try:
            data = sock.recv(65536)
        except OSError:
            return None
        if not data:
            return None
        response += data
    try:
        value = loads(response.partition(b"\n")[0])
    except ValueError:
        return None  # another program of this user has bound the address
    return value if isinstance(value, dict) else None


def ask(
    directory: str, message: Mapping[str, object], timeout_s: float, python: str = ""
) -> dict[str, Any] | None:
    """Send a message to the relay and return its response; None without a relay or a response in time."""
    sock = connect(directory, python)
    if sock is None:
        return None
    sock.settimeout(timeout_s)
    try:
        sock.sendall(dumps(message) + b"\n", NO_SIGNAL)
        return read_response(sock)
    except OSError:
        return None
    finally:
        sock.close()
