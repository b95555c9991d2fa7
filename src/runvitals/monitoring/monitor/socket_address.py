"""The local socket address of a run's monitor, or of a data folder's relay.

On Linux the address is an abstract socket name. It vanishes with its owner, needs no lock file, and works if
the data folder is on NFS. Any user can bind such a name, so a client checks the owner's user id before it
sends anything. If another user holds the name, and on other systems, the address is a socket file in a folder
that only this user can enter: in the data folder, or in `$XDG_RUNTIME_DIR` if the data folder's file system
does not support sockets.

Uses `_socket`, the C half of `socket`, because the Python half would cost a monitor 1 MB.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct
import sys
import time
import zlib

from runvitals.monitoring.monitor.peer import is_same_user

# Flag for sending to a process that may have gone: SIGPIPE would kill a training that has reset its handler.
NO_SIGNAL: int = getattr(_socket, "MSG_NOSIGNAL", 0)
_BACKLOG = 1024  # ranks of a host that may connect before the monitor accepts
# How long to wait if a listener's queue is full, as `struct timeval`: another user's process may never
# accept.
_QUEUE_TIMEOUT = struct.pack("ll", 0, 250_000)
# One of our processes that has bound the name calls `listen` within this time.
_LISTEN_WITHIN_S = 0.1
_RETRY_S = 0.002
_LOCK_WITHIN_S = 1.0
_MAX_FILE_NAME_PART_LENGTH = 40  # the whole path of a socket may have 104 bytes


class SocketAddress:
    """The address of a monitor or relay.

    Args:
        part: distinguishes it from the user's other addresses.
        directory: the data folder.

    Example:
        >>> address = SocketAddress("relay-0a1b2c3d", "/data")
        >>> address.connect() is None       # there is no relay
        True
        >>> listener = address.listen()     # so this process may start one
    """

    __slots__ = ("_directory", "_part")

    def __init__(self, part: str, directory: str) -> None:
        self._part = f"{_pid_namespace()}-{part}"
        self._directory = directory

    @property
    def name(self) -> str | None:
        """The abstract name; None on systems without abstract names.

        It includes the user id and the PID namespace, because abstract names belong to the network namespace,
        which containers may share.
        """
        return f"\0runvitals-{os.geteuid()}-{self._part}" if sys.platform == "linux" else None

    def connect(self) -> _socket.socket | None:
        """Connect to the process of our own user that listens here. Returns None if there is none."""
        if not hasattr(os, "posix_spawn"):
            return None
        if self.name is not None:
            sock = _connect(self.name)
            if sock is not None and is_same_user(sock):
                return sock
            if sock is not None:
                sock.close()
        for path in self._folders():
            folder = _open_folder(path)
            if folder < 0:
                continue
            try:
                sock = _connect(self._file(path, folder))
            finally:
                os.close(folder)
            if sock is not None and is_same_user(sock):
                return sock
            if sock is not None:
                sock.close()
        return None

    def listen(self) -> _socket.socket | None:
        """Bind the address and listen. Returns None if another process of our user listens already.

        Raises:
            OSError: no address could be bound; the text has the reasons.
        """
        reasons = []
        if self.name is not None:
            try:
                listener, is_taken = self._listen_on_name(self.name)
                if listener is not None or is_taken:
                    return listener
                reasons.append("another user of this host has bound its name")
            except OSError as error:  # abstract names may be forbidden
                reasons.append(str(error))
        for path in self._folders():
            try:
                return self._listen_in_folder(path)
            except OSError as error:
                reasons.append(str(error))
        raise OSError(errno.EADDRNOTAVAIL, f"could not create a socket: {'; '.join(reasons)}")

    @staticmethod
    def _listen_on_name(name: str) -> tuple[_socket.socket | None, bool]:
        """(listening socket or None, whether a process of our user has the name)."""
        until_s = time.monotonic() + _LISTEN_WITHIN_S
        while True:
            listener = _listen(name)
            if listener is not None:
                return listener, False
            owner = _connect(name)
            if owner is not None:
                is_ours = is_same_user(owner)
                owner.close()
                return None, is_ours
            if time.monotonic() > until_s:
                return None, False
            time.sleep(_RETRY_S)  # the name is bound, but its owner does not listen yet

    def _listen_in_folder(self, path: str) -> _socket.socket | None:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        folder = _open_folder(path)
        if folder < 0:
            raise OSError(errno.EACCES, f"{path} is not a folder that only this user can enter")
        try:
            # The lock keeps other processes from being between `bind` and `listen`, when their sockets look
            # stale.
            _lock(folder)
            _remove_stale(path, folder)
            return _listen(self._file(path, folder))
        finally:
            _unlock(folder)
            os.close(folder)

    def _folders(self) -> list[str]:
        folders = [os.path.join(self._directory, f"sockets-{os.geteuid()}")]
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        if os.path.isabs(runtime):
            folders.append(os.path.join(runtime, "runvitals"))
        if self.name is None:
            folders.insert(0, f"/tmp/runvitals-{os.geteuid()}")
        return folders

    def _file(self, path: str, folder: int) -> str:
        checksum = zlib.crc32(os.fsencode(f"{self._part}|{self._directory}"))
        part = self._part[-_MAX_FILE_NAME_PART_LENGTH:]
        return _socket_path(path, folder, f"{_boot()}-{checksum:08x}-{part}.sock")


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _boot() -> str:
    """Identifies this boot of this host, because a data folder may be shared by many hosts."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return f"{zlib.crc32(file.read()):08x}"
    except OSError:
        return "0"


def _socket_path(path: str, folder: int, name: str) -> str:
    """Return the path of a socket file, by its folder's descriptor if possible: it may be too long."""
    short = f"/proc/self/fd/{folder}"
    return f"{short if os.path.isdir(short) else path}/{name}"


def _open_folder(path: str) -> int:
    """Open a folder that belongs to our user and that no one else can enter.

    Returns -1 if it is not such a folder.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    status = os.fstat(folder)
    if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
        return folder
    os.close(folder)
    return -1


def _lock(folder: int) -> None:
    """Lock a folder.

    Raises:
        OSError: another process did not release the lock in time.
    """
    import fcntl

    until_s = time.monotonic() + _LOCK_WITHIN_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise OSError(errno.EAGAIN, "another process did not release its lock") from None
            time.sleep(_RETRY_S)
        except OSError:
            return  # a network file system without locks
        else:
            return


def _unlock(folder: int) -> None:
    """Unlock explicitly: a process that another thread has forked meanwhile also has the descriptor."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_UN)
    except OSError:
        return


def _remove_stale(path: str, folder: int) -> None:
    """Remove the sockets of this boot without a listener."""
    boot = f"{_boot()}-"
    for name in os.listdir(path):
        if not name.startswith(boot):
            continue
        sock = _new_socket()
        try:
            sock.connect(_socket_path(path, folder, name))
        except ConnectionRefusedError:
            os.unlink(os.path.join(path, name))
        except OSError:
            continue  # its queue is full, or it was just removed
        finally:
            sock.close()


def _new_socket() -> _socket.socket:
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.setblocking(True)  # a script may have set a default timeout
    return sock


def _connect(address: str) -> _socket.socket | None:
    sock = _new_socket()
    try:
        if sys.platform == "linux":
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _QUEUE_TIMEOUT)
        sock.connect(address)
    except OSError:
        sock.close()
        return None
    return sock


def _listen(address: str) -> _socket.socket | None:
    """Bind an address and listen on it. Returns None if it is in use.

    Raises:
        OSError: it could not be bound.
    """
    listener = _new_socket()
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return listener
