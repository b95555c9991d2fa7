"""The trainer's side of the monitor: finding the one of this run, or starting it. Costs the caller 1 to 3 ms,
no thread, no fork, no wait.

The first process of a run on a host binds the run's socket, starts a monitor and hands it the listening
descriptor; every other process connects. An abstract socket name leaves nothing behind when its owner dies,
needs no lock file, and works where the data folder is on NFS.
"""

from __future__ import annotations

import _socket
import os
import select
import sys
import zlib
from collections.abc import Mapping
from typing import Any

from runvitals.journal import file_descriptor
from runvitals.journal.json_codec import dumps, loads
from runvitals.monitor import spawn
from runvitals.monitor.socket_address import NO_SIGNAL, Address

_ORDER_FD, _DOOR_FD, _TRAINER_FD = 3, 4, 5
_ATTEMPTS = 5


class Unavailable(Exception):
    """No monitor could be reached or started; the text says why. The training goes on, and its `log()` is
    still kept.
    """


def address(run: str, directory: str) -> Address:
    """The address of a run's monitor on this host."""
    return Address(f"{run[:48]}-{zlib.crc32(os.fsencode(f'{run}|{directory}')):08x}", directory)


class Line:
    """A process's connection to its run's monitor.

    The process may close our descriptor (`os.closerange`) and open something else under the same number: so
    that is high, and nothing is said or closed before a look at what it is.
    """

    def __init__(self, sock: _socket.socket) -> None:
        fd = file_descriptor.move_to_high_number(sock.detach())
        self._sock = sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        self._identity = file_descriptor.identity(fd)
        self._sock.setblocking(False)
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)

    def alive(self) -> bool:
        """Whether the monitor is still there; 1 µs. It says nothing unasked, so anything to read is its
        end.
        """
        return not self._poll.poll(0)

    def is_ours(self) -> bool:
        """Whether the descriptor is still the connection."""
        return file_descriptor.is_still(self._sock.fileno(), self._identity)

    def send(self, message: Mapping[str, object]) -> bool:
        """Hand a message over; False when the monitor has gone."""
        if not self.is_ours():
            return False
        try:
            self._sock.sendall(dumps(message) + b"\n", NO_SIGNAL)
        except OSError:
            return False
        return True

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        """Send and wait for the answer; None when the monitor has gone or needs longer than `timeout_s`.

        A monitor that saw the end by itself has answered before it was asked, and may be gone by now.
        """
        if not self.is_ours():
            return None
        self.send(message)
        answer = b""
        self._sock.settimeout(timeout_s)
        try:
            while b"\n" not in answer:
                data = self._sock.recv(4096)
                if not data:
                    return None
                answer += data
        except OSError:
            return None
        # Another may be right behind it: that the whole run is over, if the last process left just then.
        value: dict[str, Any] = loads(answer.partition(b"\n")[0])
        return value

    def leave_open(self) -> None:
        """Let go of the connection, which the system closes when the process ends: so the monitor learns of
        the end in time to see how it comes.
        """
        self._sock.detach()

    def close(self) -> None:
        if self.is_ours():
            self._sock.close()
        else:
            self._sock.detach()


def connect(order: Mapping[str, Any]) -> Line:
    """A line to the monitor of the run that `order` describes, started if there is none yet, with
    `order["attach"]` said.

    Args:
        order: run, directory, project, host, boot_id, clock_ms (see `journal.clock`), settings (as they are
            recorded), options (those of single sources as they are, secrets and all), destinations (where
            the relay delivers the run to), about (name, tags, …), attach (the message of this process),
            trainer (python, argv, cwd), site (folders of third-party packages). JSON throughout.

    Raises:
        Unavailable: no monitor could be started; says why.
    """
    if not hasattr(os, "posix_spawn"):
        raise Unavailable(f"a monitor cannot be started on {sys.platform} yet; what is logged is kept")
    if file_descriptor.is_limit_low():
        few = file_descriptor.LOW_LIMIT
        raise Unavailable(f"a process may have fewer than {few} open files; what is logged is kept")
    place = address(order["run"], order["directory"])
    try:
        with file_descriptor.HigherLimit():
            return _line(place, order)
    except Unavailable:
        raise
    except Exception as error:  # what a sandbox's hooks raise when a socket is made, or a process
        raise Unavailable(f"the monitor cannot be reached: {error}") from error


def _line(place: Address, order: Mapping[str, Any]) -> Line:
    for _ in range(_ATTEMPTS):
        line = _call(place)
        if line is None and _start(place, order):
            line = _call(place)
        if line is not None and line.send(order["attach"]):
            return line
    raise Unavailable("the monitor's socket exists but nobody answers on it")


def _call(place: Address) -> Line | None:
    sock = place.call()
    return None if sock is None else Line(sock)


def _start(place: Address, order: Mapping[str, Any]) -> bool:
    """Take the address and start a monitor on it; False when another process was first."""
    try:
        door = place.bind()
        if door is None:
            return False
        try:
            _spawn(door, order)
        finally:
            door.close()
    except OSError as error:
        raise Unavailable(f"the monitor could not be started: {error}") from error
    return True


def _spawn(door: _socket.socket, order: Mapping[str, Any]) -> None:
    # Copies with high numbers, so that no copy sits where another has to go.
    import fcntl

    targets = {_ORDER_FD: _written(dumps(order)), _DOOR_FD: os.dup(door.fileno())}
    pidfd = _pidfd(int(order["attach"]["pid"]))
    if pidfd >= 0:
        targets[_TRAINER_FD] = pidfd
    try:
        for target, fd in targets.items():
            targets[target] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _TRAINER_FD + 1)
            os.close(fd)
        actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in targets.items()]
        environ = {**os.environ, "LC_ALL": "C"}  # spares the monitor the tables of a locale: 0.15 MB
        spawn.start(_command(str(order["run"])), actions, environ)
    finally:
        for fd in targets.values():
            os.close(fd)


def _written(text: bytes) -> int:
    """A descriptor that a text of any length can be read from: of an anonymous file in memory, or of one on
    the disk where the system has no such thing.

    Raises:
        OSError: there is no room for it.
    """
    try:
        fd = os.memfd_create("runvitals-order")
    except (AttributeError, OSError):
        import tempfile  # 6 ms, which only this way out has to pay

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        left = memoryview(text)
        while left:
            left = left[os.write(fd, left) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _pidfd(pid: int) -> int:
    """A descriptor of the process to watch: our own, or a child's. Opened here, it is right even if that
    process ends before the monitor
    is up."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1  # an old kernel or a strict seccomp filter: the monitor looks for it at every tick


def _command(run: str) -> list[str]:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    boot = f"import sys; sys.path.append({source!r}); from runvitals.monitor.main import main; main()"
    return [python(), "-I", "-S", "-E", "-c", boot, "runvitals-monitor", run]


def python() -> str:
    """The interpreter to run a monitor with: this one, or the one beside it where Python is embedded in
    another program.

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
