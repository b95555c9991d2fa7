"""StatvfsResult and inodes of the file systems of the paths in the settings, from statvfs.

If the server of a network file system does not respond for minutes, statvfs does not return. So such a path
is read in a thread. Until it responds, its keys are missing, `absent` says so, and all others are on time.
"""

from __future__ import annotations

import _thread
import os

from runvitals.monitoring.collectors.base import GIB, Absent, Every
from runvitals.monitoring.collectors.plumbing.mounts import mount_of, read_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.plumbing.mounts import Mount

    class StatvfsResult(Protocol):
        """The fields of os.statvfs that are used: blocks of f_frsize bytes, and inodes."""

        @property
        def f_frsize(self) -> int:
            """Bytes in a block."""

        @property
        def f_blocks(self) -> int:
            """Blocks in all."""

        @property
        def f_bfree(self) -> int:
            """Free blocks."""

        @property
        def f_bavail(self) -> int:
            """Free blocks for users other than root."""

        @property
        def f_files(self) -> int:
            """Inodes in all."""

        @property
        def f_ffree(self) -> int:
            """Free inodes."""

    Statvfs = Callable[[str], StatvfsResult]

REMOTE = frozenset(
    ("9p", "afs", "autofs", "beegfs", "beegfs_nodev", "ceph", "cifs", "coda", "curvefs", "davfs", "fuse",
     "fuseblk", "gfs2", "glusterfs", "gpfs", "juicefs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2",
     "orangefs", "panfs", "pvfs2", "smb", "smb3", "smbfs", "sshfs", "vastnfs", "virtiofs", "wekafs")
)  # fmt: skip
# StatvfsResult changes slowly, and reading it costs 20 µs, or a round trip to the server of a remote file
# system.
EVERY_S = 10.0
# While the first response of a server is outstanding, and how long it may be.
WAITING_S = 1.0
LATE_S = 5.0
# A path has fewer names, with those of its links; limited in case of a cycle.
_MAX_PARTS = 1000

NOT_ANSWERING = f"not answering: its server has not responded for more than {LATE_S:.0f} s"
NO_SIZE = "the file system reports no size"
NO_INODES = "the file system does not count inodes"


def probe(scope: Scope) -> Filesystem:
    """Make the collector; raise Absent if the machine lacks the source."""
    return watch(scope, os.statvfs, read_mounts(scope))


def watch(scope: Scope, statvfs: Statvfs, mounts: Sequence[Mount]) -> Filesystem:
    """Return the file systems of the paths that exist. Raises Absent, with the reasons, if there is none."""
    filesystem = Filesystem(scope, statvfs, mounts)
    if not filesystem.watched:
        whys = [f"{path}: {why}" for path, why in filesystem.absent.items()]
        raise Absent("; ".join(whys) or "no path to watch")
    return filesystem


class Filesystem:
    """`disk.{path}.usagePercent`, `.usageGB`, `.availableGB`, `.inodesPercent`.

    Args:
        statvfs: os.statvfs, or a function like it.
        mounts: the mounted file systems, for their types.

    ``absent`` has the paths and keys without a value.
    """

    name = "filesystem"

    def __init__(self, scope: Scope, statvfs: Statvfs, mounts: Sequence[Mount]) -> None:
        self.absent: dict[str, str] = {}
        self.watched: list[LocalPath | RemotePath] = []
        for path in scope.disk_paths:
            where = (scope.host_root + path).rstrip("/") or "/"
            if leads_to_a_server(os.path.abspath(where).replace(os.sep, "/"), mounts):
                # Do not check whether it exists: that may hang too.
                self.watched.append(RemotePath(path, where, statvfs))
                continue
            try:
                statvfs(where)
            except OSError as error:
                self.absent[f"disk.{path}"] = f"{where}: {error.strerror}"
                continue
            self.watched.append(LocalPath(path, where, statvfs))
        self._never = self.absent

    @property
    def pending(self) -> bool:
        """Whether a server has not answered yet, and is not late."""
        return any(path.is_awaited for path in self.watched)

    @property
    def every_s(self) -> float:
        """The seconds between samples: fewer while a file system has not answered."""
        return WAITING_S if self.pending else EVERY_S

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        absent = dict(self._never)
        for path in self.watched:
            absent.update(path.sample(tick))
        if absent != self.absent:
            self.absent = absent


class FilesystemUsage:
    """The keys of one path, computed from the result of statvfs."""

    __slots__ = ("_available", "_gigabytes", "_inodes", "_percent", "key")

    def __init__(self, path: str) -> None:
        self.key = f"disk.{path}"
        self._percent = f"{self.key}.usagePercent"
        self._gigabytes = f"{self.key}.usageGB"
        self._available = f"{self.key}.availableGB"
        self._inodes = f"{self.key}.inodesPercent"

    def write(self, tick: Tick, result: StatvfsResult) -> dict[str, str]:
        """Write the values. Returns the keys without one, and why."""
        gauges = tick.gauges
        absent: dict[str, str] = {}
        unit, used = result.f_frsize, result.f_blocks - result.f_bfree
        # As df: blocks reserved for root are neither used nor free, and a full disk is at 100 %.
        reachable = used + result.f_bavail
        if reachable > 0:
            gauges[self._percent] = used * 100.0 / reachable
            gauges[self._gigabytes] = used * unit / GIB
            gauges[self._available] = result.f_bavail * unit / GIB
        else:
            absent.update(dict.fromkeys((self._percent, self._gigabytes, self._available), NO_SIZE))
        if result.f_files > 0:
            gauges[self._inodes] = (result.f_files - result.f_ffree) * 100.0 / result.f_files
        else:
            absent[self._inodes] = NO_INODES
        return absent


class LocalPath:
    """A path on a local disk. A read takes 2 µs."""

    __slots__ = ("_statvfs", "_usage", "_where")

    is_awaited = False

    def __init__(self, path: str, where: str, statvfs: Statvfs) -> None:
        self._where = where
        self._statvfs = statvfs
        self._usage = FilesystemUsage(path)

    def sample(self, tick: Tick) -> dict[str, str]:
        """Write the values. Returns what is missing, and why."""
        try:
            result = self._statvfs(self._where)
        except OSError as error:  # unmounted, or the folder was deleted: no values until it is back
            return {self._usage.key: f"{self._where}: {error.strerror}"}
        return self._usage.write(tick, result)


class RemotePath:
    """A path whose server may not respond. At most one thread waits for it."""

    __slots__ = ("_absent", "_asked_s", "_asking", "_every", "_result", "_statvfs", "_usage", "_where")

    def __init__(self, path: str, where: str, statvfs: Statvfs) -> None:
        self._where = where
        self._statvfs = statvfs
        self._usage = FilesystemUsage(path)
        self._every = Every(EVERY_S)
        self._result: StatvfsResult | OSError | None = None
        self._asking = False
        self._asked_s = 0.0
        self._absent: dict[str, str] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether its first response is outstanding, and not late."""
        return self._absent is None

    def sample(self, tick: Tick) -> dict[str, str]:
        """Write the values, if there are new ones. Returns what is missing, and why."""
        result, self._result = self._result, None
        if isinstance(result, OSError):
            self._absent = {self._usage.key: f"{self._where}: {result.strerror}"}
        elif result is not None:
            self._absent = self._usage.write(tick, result)
        elif self._asking and tick.mono_s - self._asked_s >= LATE_S:
            self._absent = {self._usage.key: f"{self._where}: {NOT_ANSWERING}"}
        if not self._asking and self._every.due(tick.mono_s):
            self._asking = True
            self._asked_s = tick.mono_s
            _thread.start_new_thread(self._read, ())
        return self._absent or {}

    def _read(self) -> None:
        try:
            self._result = self._statvfs(self._where)
        except OSError as error:  # stale handle or lost server: no values; retried at the next turn
            self._result = error
        finally:
            self._asking = False


def leads_to_a_server(path: str, mounts: Sequence[Mount]) -> bool:
    """Return whether a path, or a folder that its links lead through, is in a network file system.

    Nothing in such a file system is looked at, since that may hang.
    """
    rest = path.split("/")[::-1]
    folder = ""
    for _ in range(_MAX_PARTS):
        if not rest:
            break
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            folder = folder.rpartition("/")[0]
            continue
        folder = f"{folder}/{part}"
        mount = mount_of(mounts, folder)
        if mount is not None and is_remote(mount.kind):
            return True
        try:
            target = os.readlink(folder)
        except OSError:  # not a link
            continue
        folder = "" if target.startswith("/") else folder.rpartition("/")[0]
        rest += target.split("/")[::-1]
    mount = mount_of(mounts, folder or "/")
    return mount is not None and is_remote(mount.kind)


def is_remote(kind: str) -> bool:
    """Return whether a file system of this type depends on a server, which may not respond.

    >>> is_remote("nfs4"), is_remote("fuse.sshfs"), is_remote("ext4")
    (True, True, False)
    """
    return kind in REMOTE or kind.startswith("fuse.")
