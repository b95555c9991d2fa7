"""Space and inodes of the file systems that hold the paths the user named: statvfs.

The server of a network file system may not answer for minutes, and statvfs then does not return. Such a path
is asked by a thread of its own: until it answers, its keys are missing and all others are on time.
"""

from __future__ import annotations

import _thread
import os

from runvitals.collectors.base import GIB, Absent, Every
from runvitals.collectors.plumbing.mounts import mount_of, read_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from runvitals.collectors.base import Scope, Tick
    from runvitals.collectors.plumbing.mounts import Mount

    class Space(Protocol):
        """What is used of os.statvfs's answer: blocks of f_frsize bytes, and inodes."""

        @property
        def f_frsize(self) -> int: ...
        @property
        def f_blocks(self) -> int: ...
        @property
        def f_bfree(self) -> int: ...
        @property
        def f_bavail(self) -> int: ...
        @property
        def f_files(self) -> int: ...
        @property
        def f_ffree(self) -> int: ...

    Statvfs = Callable[[str], Space]

REMOTE = frozenset(
    ("9p", "afs", "autofs", "beegfs", "beegfs_nodev", "ceph", "cifs", "coda", "curvefs", "davfs", "fuse",
     "fuseblk", "gfs2", "glusterfs", "gpfs", "juicefs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2",
     "orangefs", "panfs", "pvfs2", "smb", "smb3", "smbfs", "sshfs", "vastnfs", "virtiofs", "wekafs")
)  # fmt: skip
# Space changes slowly, and asking for it costs 20 µs, or a round trip to a remote file system's server.
EVERY_S = 10.0


def probe(scope: Scope) -> Filesystem:
    return watch(scope, os.statvfs, read_mounts(scope))


def watch(scope: Scope, statvfs: Statvfs, mounts: Sequence[Mount]) -> Filesystem:
    """The file systems of the paths that are there. Absent, with the reasons, where none is."""
    filesystem = Filesystem(scope, statvfs, mounts)
    if not filesystem.watched:
        whys = [f"{path}: {why}" for path, why in filesystem.absent.items()]
        raise Absent("; ".join(whys) or "no path to watch")
    return filesystem


class Filesystem:
    """`disk.{path}.usagePercent`, `.usageGB`, `.availableGB`, `.inodesPercent`.

    Args:
        statvfs: how a path is asked: os.statvfs, or what does as it does.
        mounts: which type of file system lies where.
    """

    name = "filesystem"
    every_s = EVERY_S

    def __init__(self, scope: Scope, statvfs: Statvfs, mounts: Sequence[Mount]) -> None:
        self.absent: dict[str, str] = {}
        self.watched: list[Local | Remote] = []
        for path in scope.disk_paths:
            where = (scope.host_root + path).rstrip("/") or "/"
            mount = mount_of(mounts, os.path.abspath(where).replace(os.sep, "/"))
            if mount is not None and is_remote(mount.kind):
                # Not even asked whether it is there: that question may hang as well.
                self.watched.append(Remote(path, where, statvfs))
                continue
            try:
                statvfs(where)
            except OSError as error:
                self.absent[path] = f"{where}: {error.strerror}"
                continue
            self.watched.append(Local(path, where, statvfs))

    def sample(self, tick: Tick) -> None:
        for filesystem in self.watched:
            filesystem.sample(tick)


class Usage:
    """The keys of one path, and how they follow from statvfs's answer."""

    __slots__ = ("_available", "_gigabytes", "_inodes", "_percent")

    def __init__(self, path: str) -> None:
        self._percent = f"disk.{path}.usagePercent"
        self._gigabytes = f"disk.{path}.usageGB"
        self._available = f"disk.{path}.availableGB"
        self._inodes = f"disk.{path}.inodesPercent"

    def write(self, tick: Tick, answer: Space) -> None:
        gauges = tick.gauges
        unit, used = answer.f_frsize, answer.f_blocks - answer.f_bfree
        # As df: the blocks kept for root are neither used nor free, and a full disk reads 100 %.
        reachable = used + answer.f_bavail
        if reachable > 0:
            gauges[self._percent] = used * 100.0 / reachable
            gauges[self._gigabytes] = used * unit / GIB
            gauges[self._available] = answer.f_bavail * unit / GIB
        if answer.f_files > 0:
            gauges[self._inodes] = (answer.f_files - answer.f_ffree) * 100.0 / answer.f_files


class Local:
    """A path on this machine's own disks: 2 µs a question."""

    __slots__ = ("_statvfs", "_usage", "_where")

    def __init__(self, path: str, where: str, statvfs: Statvfs) -> None:
        self._where = where
        self._statvfs = statvfs
        self._usage = Usage(path)

    def sample(self, tick: Tick) -> None:
        try:
            answer = self._statvfs(self._where)
        except OSError:  # unmounted, or the folder was deleted: no reading until it is back
            return
        self._usage.write(tick, answer)


class Remote:
    """A path whose server may not answer. At most one thread is ever waiting for it."""

    __slots__ = ("_answer", "_asking", "_every", "_statvfs", "_usage", "_where")

    def __init__(self, path: str, where: str, statvfs: Statvfs) -> None:
        self._where = where
        self._statvfs = statvfs
        self._usage = Usage(path)
        self._every = Every(EVERY_S)
        self._answer: Space | None = None
        self._asking = False

    def sample(self, tick: Tick) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            self._usage.write(tick, answer)
        if not self._asking and self._every.due(tick.mono_s):
            self._asking = True
            _thread.start_new_thread(self._ask, ())

    def _ask(self) -> None:
        try:
            self._answer = self._statvfs(self._where)
        except OSError:  # stale handle, server gone: no reading, and the next turn asks again
            self._answer = None
        finally:
            self._asking = False


def is_remote(kind: str) -> bool:
    """Whether a file system of this type asks somebody else, who may not answer.

    >>> is_remote("nfs4"), is_remote("fuse.sshfs"), is_remote("ext4")
    (True, True, False)
    """
    return kind in REMOTE or kind.startswith("fuse.")
