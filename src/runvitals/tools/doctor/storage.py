"""Checks the data folder: writable, free space, kind of file system, owner."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.plumbing.mounts import mount_of, read_mounts
from runvitals.tools.doctor.finding import Check

_MIB, _GIB = 2**20, 2**30
LITTLE_BYTES = 1 * _GIB
TOO_LITTLE_BYTES = 100 * _MIB
_SKEW_S = 2.0
_FSYNC_SLOW_S = 0.5
_NETWORK = (
    "nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "smbfs", "9p", "virtiofs", "glusterfs",
    "afs", "pvfs2", "orangefs", "wekafs", "panfs", "fuse.sshfs", "fuse.gcsfuse", "fuse.s3fs", "fuse.goofys",
    "fuse.juicefs", "fuse.glusterfs", "fuse.ceph", "fuse.mount-s3",
)  # fmt: skip
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


def findings(directory: str) -> Iterator[Check]:
    """Check a data folder, which need not exist yet.

    Args:
        directory: absolute path.
    """
    folder = _existing(directory)
    yield _write_test(directory, folder)
    yield from _free_space(folder)
    yield _kind(folder)
    yield from _privacy(directory)


def _existing(directory: str) -> str:
    """Return the folder itself, or its nearest existing parent."""
    while not os.path.isdir(directory) and os.path.dirname(directory) != directory:
        directory = os.path.dirname(directory)
    return directory


def _write_test(directory: str, folder: str) -> Check:
    """Write a file as a monitor would, and measure the disk's latency and clock."""
    path = os.path.join(folder, f".runvitals-doctor-{os.getpid()}")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        return Check(
            "storage", "data folder", "FAIL", f"{directory} is not writable: {error.strerror}",
            "set RUNVITALS_DIR to a writable folder",
        )  # fmt: skip
    try:
        began_s = time.monotonic()
        os.write(fd, bytes(4096))
        os.fsync(fd)
        took_s = time.monotonic() - began_s
        skew_s = os.fstat(fd).st_mtime - time.time()
    except OSError as error:
        return Check(
            "storage", "data folder", "FAIL", f"{directory}: {error.strerror}",
            "set RUNVITALS_DIR to a writable folder",
        )  # fmt: skip
    finally:
        os.close(fd)
        os.unlink(path)
    text = f"{directory} is writable; writing 4 KiB took {took_s * 1e3:.1f} ms"
    if abs(skew_s) > _SKEW_S:
        text += f"; its clock is off by {skew_s:+.0f} s"
        return Check("storage", "data folder", "PARTIAL", text, "synchronise both clocks (NTP)")
    if took_s > _FSYNC_SLOW_S:
        return Check("storage", "data folder", "PARTIAL", text, "set RUNVITALS_DIR to a faster disk")
    return Check("storage", "data folder", "PASS", text)


def _free_space(folder: str) -> Iterator[Check]:
    if not hasattr(os, "statvfs"):
        return
    status = os.statvfs(folder)
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    text = f"{free / _GIB:.1f} of {size / _GIB:.1f} GiB free"
    remedy = "free disk space, or set RUNVITALS_DIR to another disk; a day of 8 GPUs takes about 90 MB"
    if free < TOO_LITTLE_BYTES:
        yield Check("storage", "free space", "FAIL", text, remedy)
    elif free < LITTLE_BYTES:
        yield Check("storage", "free space", "PARTIAL", text, remedy)
    else:
        yield Check("storage", "free space", "PASS", text)
    if status.f_files and not status.f_favail:
        text = "no inodes left: no file can be created, even with free space"
        yield Check("storage", "inodes", "FAIL", text, "delete unneeded files")


def _kind(folder: str) -> Check:
    mount = mount_of(read_mounts(Scope()), os.path.realpath(folder))
    if mount is None:
        return Check("storage", "file system", "ABSENT", "unknown: the system does not report it")
    where = f"{mount.kind} at {mount.point}"
    if mount.kind in _NETWORK:
        text = f"{where}: a network file system; safe, but writes wait when it is slow"
        return Check(
            "storage", "file system", "PARTIAL", text,
            "set RUNVITALS_DIR to a local disk and deliver to a server, if the network is slow",
        )  # fmt: skip
    if mount.kind in _IN_MEMORY:
        text = f"{where}: in memory, lost at the next reboot"
        return Check("storage", "file system", "PARTIAL", text, "set RUNVITALS_DIR to a disk")
    return Check("storage", "file system", "PASS", where)


def _privacy(directory: str) -> Iterator[Check]:
    """Yield a finding if the folder is another user's: journals contain command lines and output."""
    if not hasattr(os, "getuid") or not os.path.isdir(directory):
        return
    status = os.stat(directory)
    if status.st_uid != os.getuid():
        text = f"{directory} belongs to user {status.st_uid}, but this is user {os.getuid()}"
        yield Check("storage", "owner", "PARTIAL", text, "use a folder that you own")
