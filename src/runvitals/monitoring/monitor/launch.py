"""Connects a process to the monitor of its run, and starts the monitor if necessary.

Takes 1 to 3 ms, without a thread, a fork or waiting.

The first process of a run on a host binds the run's socket, starts a monitor, and passes it the listening
descriptor and one end of a connection; every other process connects.
"""

from __future__ import annotations

import _socket
import os
import sys
import zlib
from collections.abc import Mapping
from typing import Any

from runvitals.base.json_codec import dumps, loads
from runvitals.journal import file_descriptor
from runvitals.monitoring.monitor import boot, spawn
from runvitals.monitoring.monitor.socket_address import NO_SIGNAL, SocketAddress

if sys.platform != "win32":
    import fcntl  # here and not in `_spawn`: loading it takes 0.3 ms, which would be part of `init()`

_SPEC_FD, _LISTENER_FD, _CONNECTION_FD, _TRAINER_FD = 3, 4, 5, 6
_ATTEMPTS = 5
_MAX_RESPONSE_LENGTH = 65_536
_BOOT = "import sys; sys.path.append(sys.argv[1]); from runvitals.monitoring.monitor.main import main; main()"


class Unavailable(Exception):
    """No monitor could be reached or started; the text says why.

    The training continues, and its `log()` calls are still recorded.
    """


def address(run: str, directory: str) -> SocketAddress:
    """Return the address of a run's monitor on this host."""
    return SocketAddress(f"{run[:48]}-{zlib.crc32(os.fsencode(f'{run}|{directory}')):08x}", directory)


class MonitorSocket:
    """A process's connection to the monitor of its run.

    The process may close our descriptor (`os.closerange`) and open another file under the same number. So the
    descriptor has a high number, and is checked before anything is sent or closed.

    Attributes:
        started_monitor: whether this process started the monitor, which then records the run's description.
    """

    started_monitor = False

    def __init__(self, sock: _socket.socket) -> None:
        fd = file_descriptor.move_to_high_number(sock.detach())
        self._sock = sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        self._identity = file_descriptor.identity(fd)
        self._sock.setblocking(False)

    def is_alive(self) -> bool:
        """Return whether the monitor is still running; 1 µs.

        It never sends unrequested messages, so a readable socket means that it has ended. Not asked of
        `select`, which gevent and eventlet replace.
        """
        try:
            self._sock.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:  # the training has closed our descriptor
            return False
        return False

    def is_ours(self) -> bool:
        """Return whether the descriptor still is this connection."""
        return file_descriptor.is_still(self._sock.fileno(), self._identity)

    def send(self, message: Mapping[str, object]) -> bool:
        """Send a message. Returns False if the monitor has gone."""
        if not self.is_ours():
            return False
        try:
            self._sock.sendall(dumps(message) + b"\n", NO_SIGNAL)
        except OSError:
            return False
        return True

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        """Send a message and wait for the response.

        Returns None if the monitor has gone or does not respond within `timeout_s`.

        A monitor that has detected the end of the process has sent its response before, and may have exited.
        """
        if not self.is_ours():
            return None
        self.send(message)
        response = b""
        self._sock.settimeout(timeout_s)
        try:
            while b"\n" not in response and len(response) < _MAX_RESPONSE_LENGTH:
                data = self._sock.recv(4096)
                if not data:
                    return None
                response += data
            # A second response may follow, that the whole run is over, if the last process left just then.
            value = loads(response.partition(b"\n")[0])
        except (OSError, ValueError):  # ValueError: another program of this user has bound the address
            return None
        finally:
            self._sock.setblocking(False)
        return value if isinstance(value, dict) else None

    def leave_open(self) -> None:
        """Keep the connection open until the process ends.

        The system then closes it early enough for the monitor to read the exit status before the process is
        reaped.
        """
        self._sock.detach()

    def close(self) -> None:
        """Release what is open."""
        if self.is_ours():
            self._sock.close()
        else:
            self._sock.detach()


def connect(spec: Mapping[str, Any]) -> MonitorSocket:
    """Connect to the monitor of a run, and start it if there is none. It gets `spec["attach"]`.

    Args:
        spec: run, directory, project, host, boot_id, clock_ms (see `journal.clock`), settings (as recorded),
            options (settings of single sources, including secrets), destinations (where the relay delivers
            the run to), about (name, tags, …) and described_ms (since when), attach (the message of this
            process), trainer (python, argv, cwd), site (folders of third-party packages). All values must be
            representable in JSON.

    Raises:
        Unavailable: no monitor could be started; the text says why.
    """
    if not hasattr(os, "posix_spawn"):
        raise Unavailable(f"the monitor does not support {sys.platform} yet; log() is still recorded")
    if file_descriptor.is_limit_low():
        limit = file_descriptor.LOW_LIMIT
        raise Unavailable(f"a process may have fewer than {limit} open files; log() is still recorded")
    monitor_address = address(spec["run"], spec["directory"])
    try:
        with file_descriptor.HigherLimit():
            return _connect_or_start(monitor_address, spec)
    except Unavailable:
        raise
    except Exception as error:  # raised by audit hooks of a sandbox when a socket or process is created
        raise Unavailable(f"could not connect to the monitor: {error}") from error


def _connect_or_start(monitor_address: SocketAddress, spec: Mapping[str, Any]) -> MonitorSocket:
    for _ in range(_ATTEMPTS):
        sock = monitor_address.connect()
        if sock is not None:
            connection = MonitorSocket(sock)
            if connection.send(spec["attach"]):
                return connection
        elif (started := _start(monitor_address, spec)) is not None:
            return started
    raise Unavailable("the monitor's socket exists but the monitor does not respond")


def _start(monitor_address: SocketAddress, spec: Mapping[str, Any]) -> MonitorSocket | None:
    """Bind the address and start a monitor on it. Returns None if another process was first."""
    try:
        listener = monitor_address.listen()
        if listener is None:
            return None
        try:
            connection = MonitorSocket(_spawn(listener, spec))
        finally:
            listener.close()
    except OSError as error:
        raise Unavailable(f"the monitor could not be started: {error}") from error
    connection.started_monitor = True
    return connection


def _spawn(listener: _socket.socket, spec: Mapping[str, Any]) -> _socket.socket:
    """Start a monitor. Returns our end of the connection to it."""
    ours, monitors = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    opened = []
    try:
        opened.append(_memory_file(dumps({**spec, "starter": os.getpid()})))
        inherited = {_SPEC_FD: opened[0], _LISTENER_FD: listener.fileno(), _CONNECTION_FD: monitors.fileno()}
        pidfd = _pidfd(int(spec["attach"]["pid"]))
        if pidfd >= 0:
            opened.append(pidfd)
            inherited[_TRAINER_FD] = pidfd
        actions = []
        for target, fd in inherited.items():
            # A copy above the target numbers, so that no target overwrites the source of another.
            opened.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _TRAINER_FD + 1))
            actions.append((os.POSIX_SPAWN_DUP2, opened[-1], target))
        environ = {**os.environ, "LC_ALL": "C"}  # saves the tables of a locale: 0.15 MB
        spawn.start(_command(str(spec["run"])), actions, environ)
    except BaseException:
        ours.close()
        raise
    finally:
        monitors.close()
        for fd in opened:
            os.close(fd)
    return ours


def _memory_file(text: bytes) -> int:
    """Write a text of any length to an anonymous file in memory, or on disk if the system has no such files.

    Returns its descriptor.

    Raises:
        OSError: no space for it.
    """
    try:
        fd = os.memfd_create("runvitals-spec")
    except (AttributeError, OSError):
        import tempfile  # takes 6 ms

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _pidfd(pid: int) -> int:
    """Open a pidfd of the process to watch, our own or a child.

    Opened here, it is correct even if the process ends before the monitor has started. Returns -1 if that
    fails.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1  # an old kernel or a strict seccomp filter: the monitor checks the process every second


def _command(run: str) -> list[str]:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    interpreter = python()
    compiled = boot.__spec__.cached if boot.__spec__ is not None else None
    if compiled is not None and interpreter == sys.executable and os.path.exists(compiled):
        program = [compiled]
    else:  # Python may not write compiled files, or another version may run the monitor
        program = ["-c", _BOOT]
    return [interpreter, "-I", "-S", "-E", *program, source, "runvitals-monitor", run]


def python() -> str:
    """Return the interpreter that runs the monitor.

    This one, or the one of the same installation if Python is embedded in another program.

    Raises:
        Unavailable: none was found.
    """
    bin_dir = os.path.join(sys.prefix, "bin")
    for candidate in (sys.executable, os.path.join(bin_dir, "python3"), getattr(sys, "_base_executable", "")):
        if (
            candidate
            and os.path.basename(candidate).startswith(("python", "pypy"))
            and os.access(candidate, os.X_OK)
        ):
            return candidate
    raise Unavailable(f"no Python interpreter was found (sys.executable is {sys.executable!r})")
