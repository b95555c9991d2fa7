"""The monitor's line to the relay, the process that delivers journals elsewhere: one for each user and data
folder.

As with the monitor itself (`launch.py`), whoever comes first binds the socket's name and hands the listening
descriptor to the process it starts. Nothing of this is loaded in a run without a destination.

To the relay: `{"op": "serve", "run", "destinations": […], "cwd", "environ": {…}}`; the line says that the run
goes on for as long as it is open. From the relay: `{"op": "stop", "text"}`, when somebody asked at a
destination for the end of the run; `{"op": "event", "name", "text"}`, for the run's journal.
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

DOOR_FD = 3  # the listening socket, in a relay
_HIGHEST_INHERITED_FD = 5  # a monitor's order, door and trainer, which a relay must not hold open
# A relay that dies is replaced at once, then after 1, 2, 4 … 60 s. One that lived longer than a minute was a
# good one: what failed before it is forgotten.
_LONGEST_WAIT_S = 60.0
_GOOD_LIFE_S = 60.0
_URLS = {"http", "https"}
_OURS = ("RUNVITALS_SERVER", "RUNVITALS_TOKEN")


def address(directory: str) -> Address:
    """The address of the relay of a data folder."""
    directory = os.path.abspath(directory)
    return Address(f"relay-{zlib.crc32(os.fsencode(directory)):08x}", directory)


def call(directory: str) -> _socket.socket | None:
    """A connection to the relay of a data folder, or None where there is none of our own user."""
    return address(directory).call()


def start(directory: str, door: _socket.socket) -> None:
    """Start a relay on a listening socket. It is nobody's child, and outlives us. 1 to 2 ms.

    Raises:
        OSError: it cannot be started.
    """
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Without the working directory, in which a user's file may have the name of a module.
    boot = (
        f"import sys; sys.path = [p for p in sys.path if p and p != {source!r}] + [{source!r}]; "
        "from runvitals.relay.main import main; main()"
    )
    command = [sys.executable, "-c", boot, "runvitals-relay", os.path.abspath(directory)]
    import fcntl

    high = fcntl.fcntl(door.fileno(), fcntl.F_DUPFD_CLOEXEC, 64)  # so that DOOR_FD is not the door itself
    actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, high, DOOR_FD)]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in range(DOOR_FD + 1, _HIGHEST_INHERITED_FD + 1)]
    try:
        spawn.start(command, actions, os.environ)
    finally:
        os.close(high)


def own_variables(destinations: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are a destination's own: those that begin with its name. A mere URL is a runvitals
    server, whose token is for the server that is named beside it. `RUNVITALS_DESTINATIONS` names them all:
    what the variables hold is for the servers among them.

    Example:
        >>> own_variables(["mlflow:http://host:5000"], {"MLFLOW_TRACKING_USERNAME": "me", "HOME": "/home/me"})
        {'MLFLOW_TRACKING_USERNAME': 'me', 'RUNVITALS_DESTINATIONS': '["mlflow:http://host:5000"]'}
    """
    all_of_them = list(destinations)
    names = {text.partition(":")[0] for text in all_of_them}
    prefixes = tuple(f"{name.upper().replace('-', '_')}_" for name in names - _URLS)
    ours = _OURS if names & _URLS else ()
    own = {name: text for name, text in environ.items() if name in ours or name.startswith(prefixes)}
    if names - _URLS:
        own["RUNVITALS_DESTINATIONS"] = dumps(all_of_them).decode()
    return own


def reached(directory: str) -> _socket.socket | None:
    """A connection to the relay of a data folder, started if there is none; None where there can be none."""
    sock = call(directory)
    if sock is not None:
        return sock
    try:
        door = address(directory).bind()
        if door is not None:
            try:
                start(directory, door)
            finally:
                door.close()
    except OSError:
        return None  # no process can be made just now; the journal waits
    return call(directory)


class RelayLine:
    """A run's line to the relay, which is started if there is none, and again if it dies.

    Args:
        directory: the data folder.
        run: the run's id.
        destinations: where it goes.
        cwd: what relative paths of destinations are relative to.
        reach: makes a connection to the relay of a data folder, which it starts where there is none; None
            where it cannot.

    Attributes:
        fd: to be polled; -1 while there is no relay.

    Example:
        >>> line = RelayLine("/data", "abc", ["http://127.0.0.1:8900"], "/home/me")
        >>> line.mind(time.monotonic())     # every now and then
        >>> line.messages()                 # when `fd` is readable
        [{'op': 'stop', 'text': 'asked for on http://127.0.0.1:8900'}]
    """

    __slots__ = (
        "_backoff",
        "_buffer",
        "_connected_s",
        "_directory",
        "_reach",
        "_said",
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
        self._reach = reach or reached
        # In the memory of the two processes only: there are passwords among them.
        environ = own_variables(destinations, os.environ)
        self._said = {
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
        """See that there is a relay; True when a new line was made. Nothing but a comparison when there is
        one."""
        if self._sock is not None:
            if self._unsent:
                self._send()
            return False
        if self._connected_s:
            if now_s - self._connected_s > _GOOD_LIFE_S:
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
        self._unsent = dumps(self._said) + b"\n"
        self._send()
        return self._sock is not None

    def _send(self) -> None:
        """Send what is left of our words: what the socket does not take now waits for the next look."""
        assert self._sock is not None
        try:
            while self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def messages(self) -> list[Mapping[str, Any]]:
        """What the relay says. When it has gone, `fd` is -1.

        Raises:
            ValueError: something that is not one JSON object a line.
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
        """Say that the run is over here."""
        if self._sock is not None:
            self._sock.close()
            self._sock, self.fd, self._buffer, self._unsent = None, -1, b"", b""


def read_answer(sock: _socket.socket) -> dict[str, Any] | None:
    """One line from a relay, or None when it has gone or the socket's time is over."""
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
    """The relay's answer to a question; None where there is no relay, or none in time."""
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
