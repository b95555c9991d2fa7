"""Where a user's processes find the monitor of a run, or the relay, on this host.

On Linux the address is an abstract socket name. It vanishes with its owner, needs no lock, and works where
the data folder is on NFS. But anybody may take such a name, so whoever connects looks at the owner's user id
before a word is said. Where another user has the name, and on other systems, the address is a socket file in
a folder that only this user can enter: in the data folder, or in `$XDG_RUNTIME_DIR` where the data folder's
file system has no sockets.

`_socket` is the C half of `socket`, whose Python half would cost a monitor 1 MB.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct
import sys
import time
import zlib

# How to send to a process that may have gone: a training that gave SIGPIPE back its default would end by it.
NO_SIGNAL: int = getattr(_socket, "MSG_NOSIGNAL", 0)
_BACKLOG = 1024  # ranks of a host that may come at once, before the monitor is up
_UCRED_SIZE = 12
# How long to wait in a listener's full queue, as `struct timeval`: whoever holds the name may never accept.
_QUEUE_TIME = struct.pack("ll", 0, 250_000)
# A process of ours that has bound the name listens on it a moment later.
_LISTEN_WITHIN_S = 0.1
_LOOK_S = 0.002
_LOCK_WITHIN_S = 1.0
_LONGEST_FILE_NAME_PART = 40  # a socket's whole path may have 104 bytes


def peer(sock: _socket.socket) -> tuple[int, int]:
    """(process id, user id) of the other side, as the kernel knows them. Of a listener, they are those of the
    process that began to listen. Without SO_PEERCRED (macOS) the socket's folder keeps others out, and the
    process id is unknown: 0.
    """
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return 0, os.geteuid()
    raw = sock.getsockopt(_socket.SOL_SOCKET, option, _UCRED_SIZE)
    return int.from_bytes(raw[0:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)


def is_ours(sock: _socket.socket) -> bool:
    """Whether the other side belongs to our own user."""
    return peer(sock)[1] == os.geteuid()


class Address:
    """The address of one monitor or relay.

    Args:
        part: what tells it from the user's other ones.
        directory: the data folder.

    Example:
        >>> address = Address("relay-0a1b2c3d", "/data")
        >>> address.call() is None      # nobody is there
        True
        >>> door = address.bind()       # so this process begins one
    """

    __slots__ = ("_directory", "_part")

    def __init__(self, part: str, directory: str) -> None:
        self._part = f"{_pid_namespace()}-{part}"
        self._directory = directory

    @property
    def name(self) -> str | None:
        """The abstract name; None on systems without such names.

        User and process namespace are part of it, since abstract names belong to the network namespace, which
        containers may share.
        """
        return f"\0runvitals-{os.geteuid()}-{self._part}" if sys.platform == "linux" else None

    def call(self) -> _socket.socket | None:
        """A connection to the process of our own user that listens here; None where there is none, as on
        systems without monitors.
        """
        if not hasattr(os, "posix_spawn"):
            return None
        if self.name is not None:
            sock = _connected(self.name)
            if sock is not None and is_ours(sock):
                return sock
            if sock is not None:
                sock.close()
        for path in self._folders():
            folder = _open_folder(path)
            if folder < 0:
                continue
            try:
                sock = _connected(self._file(path, folder))
            finally:
                os.close(folder)
            if sock is not None and is_ours(sock):
                return sock
            if sock is not None:
                sock.close()
        return None

    def bind(self) -> _socket.socket | None:
        """A listening socket; None where another process of ours was first.

        Raises:
            OSError: there can be none; the text says why.
        """
        reasons = []
        if self.name is not None:
            try:
                door, taken = self._bind_name(self.name)
                if door is not None or taken:
                    return door
                reasons.append("another user of this host holds its name")
            except OSError as error:  # abstract names may be forbidden
                reasons.append(str(error))
        for path in self._folders():
            try:
                return self._bind_in(path)
            except OSError as error:
                reasons.append(str(error))
        raise OSError(errno.EADDRNOTAVAIL, f"no socket can be made: {'; '.join(reasons)}")

    @staticmethod
    def _bind_name(name: str) -> tuple[_socket.socket | None, bool]:
        """(listening socket or None, whether a process of ours has the name)."""
        until_s = time.monotonic() + _LISTEN_WITHIN_S
        while True:
            door = _listening(name)
            if door is not None:
                return door, False
            holder = _connected(name)
            if holder is not None:
                ours = is_ours(holder)
                holder.close()
                return None, ours
            if time.monotonic() > until_s:
                return None, False
            time.sleep(_LOOK_S)  # it is bound and not listened on yet

    def _bind_in(self, path: str) -> _socket.socket | None:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        folder = _open_folder(path)
        if folder < 0:
            raise OSError(errno.EACCES, f"{path} is not a folder that belongs to us alone")
        try:
            # What nobody answers on is removed: no other process may be between its `bind` and `listen`.
            _lock(folder)
            _remove_stale(path, folder)
            return _listening(self._file(path, folder))
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
        part = self._part[-_LONGEST_FILE_NAME_PART:]
        return _place(path, folder, f"{_boot()}-{checksum:08x}-{part}.sock")


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _boot() -> str:
    """What tells this boot of this host from others: a data folder may be shared by many hosts."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return f"{zlib.crc32(file.read()):08x}"
    except OSError:
        return "0"


def _place(path: str, folder: int, name: str) -> str:
    """The path of a socket file: by the folder's descriptor where that works, for a path may be too long."""
    short = f"/proc/self/fd/{folder}"
    return f"{short if os.path.isdir(short) else path}/{name}"


def _open_folder(path: str) -> int:
    """A descriptor of a folder that is ours and that nobody else can enter; -1 where there is no such one."""
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
    """Be the only one in a folder.

    Raises:
        OSError: another process does not let go of it.
    """
    import fcntl

    until_s = time.monotonic() + _LOCK_WITHIN_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise OSError(errno.EAGAIN, "another process does not let go of its lock") from None
            time.sleep(_LOOK_S)
        except OSError:
            return  # a network file system without locks
        else:
            return


def _unlock(folder: int) -> None:
    """Not by closing alone: a process that another thread forked meanwhile has the descriptor, too."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_UN)
    except OSError:
        return


def _remove_stale(path: str, folder: int) -> None:
    """Remove the sockets of this boot that nobody listens on any more."""
    boot = f"{_boot()}-"
    for name in os.listdir(path):
        if not name.startswith(boot):
            continue
        sock = _new_socket()
        try:
            sock.connect(_place(path, folder, name))
        except ConnectionRefusedError:
            os.unlink(os.path.join(path, name))
        except OSError:
            continue  # one with a full queue, or one that has just gone
        finally:
            sock.close()


def _new_socket() -> _socket.socket:
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.setblocking(True)  # whatever a script has set as the default
    return sock


def _connected(place: str) -> _socket.socket | None:
    sock = _new_socket()
    try:
        if sys.platform == "linux":
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _QUEUE_TIME)
        sock.connect(place)
    except OSError:
        sock.close()
        return None
    return sock


def _listening(place: str) -> _socket.socket | None:
    """A socket that listens there, or None where there is one already.

    Raises:
        OSError: there can be none.
    """
    door = _new_socket()
    try:
        door.bind(place)
        door.listen(_BACKLOG)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return door
