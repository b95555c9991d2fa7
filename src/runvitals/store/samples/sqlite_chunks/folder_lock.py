"""One process writes to a folder: it holds a lock on `store.lock`, which the system lets go when the process
ends.
"""

from __future__ import annotations

import os
import sys

from runvitals.store import private_files
from runvitals.store.samples.contract import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = "store.lock"
_FAR_AWAY = 1 << 30  # Windows locks bytes, and nobody could read the pid in locked ones


class FolderLock:
    """Held from construction to `close`.

    Raises:
        StoreError: another process holds it, or the folder cannot be written to.
    """

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, NAME)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StoreError(f"the store in {folder} cannot be written to: {error.strerror}") from error
        private_files.take_back(path)
        try:
            _lock(self._fd)
        except OSError as error:
            holder = os.read(self._fd, 32).decode("ascii", "replace").strip()
            os.close(self._fd)
            by = f"process {holder}" if holder else "another process"
            raise StoreError(
                f"the store in {folder} is in use by {by}: stop that one first, or use another folder"
            ) from error
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode("ascii"))

    def close(self) -> None:
        os.close(self._fd)


def _lock(fd: int) -> None:
    if sys.platform == "win32":
        os.lseek(fd, _FAR_AWAY, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
