"""Ensures that a single process writes to a folder.

It holds a lock on `store.lock`, which the kernel releases when the process ends. The folder itself is locked,
too, where the file system can do that: users delete what they take for a stale lock file.
"""

from __future__ import annotations

import os
import sys

from runvitals.store import private_files
from runvitals.store.samples.interface import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = "store.lock"
_LOCKED_BYTE = 1 << 30  # Windows locks byte ranges, and locked ones cannot be read, unlike the pid


class FolderLock:
    """A lock on a folder, from construction to `close`.

    Raises:
        StoreError: another process has it, or the folder cannot be written to.
    """

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, NAME)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise _not_writable(folder, error) from error
        private_files.restrict(path)
        try:
            _lock(self._fd)
        except OSError as error:
            pid = os.read(self._fd, 32).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise _in_use(folder, f"process {pid}" if pid else "another process") from error
        try:
            self._folder_fd = _locked_folder(folder)
        except BlockingIOError as error:
            os.close(self._fd)
            raise _in_use(folder, "another process") from error
        try:
            os.ftruncate(self._fd, 0)
            os.write(self._fd, f"{os.getpid()}\n".encode("ascii"))
        except OSError as error:
            self.close()
            raise _not_writable(folder, error) from error

    def close(self) -> None:
        """Release the lock."""
        os.close(self._fd)
        if self._folder_fd is not None:
            os.close(self._folder_fd)


def _in_use(folder: str, owner: str) -> StoreError:
    return StoreError(f"the store in {folder} is in use by {owner}: stop it first, or use another folder")


def _not_writable(folder: str, error: OSError) -> StoreError:
    return StoreError(f"the store in {folder} is not writable: {error.strerror}")


def _locked_folder(folder: str) -> int | None:
    """Return a descriptor of the folder, locked; None where folders cannot be locked, as on NFS and Windows.

    Raises:
        BlockingIOError: another process has locked it.
    """
    if sys.platform == "win32":
        return None
    fd = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _lock(fd)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:
        os.close(fd)
        return None
    return fd


def _lock(fd: int) -> None:
    if sys.platform == "win32":
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
