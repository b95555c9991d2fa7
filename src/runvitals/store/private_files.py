"""Files that only their owner can read and write, whatever the folder and the umask allow."""

from __future__ import annotations

import os

MODE = 0o600
_BESIDE = ("", "-wal", "-shm", "-journal")


def make(path: str, exclusive: bool = False) -> None:
    """Make a file that is not there yet. SQLite gives the files beside it the same mode.

    Raises:
        OSError: it cannot be made; where `exclusive`, it is there already.
    """
    flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if exclusive else 0) | getattr(os, "O_CLOEXEC", 0)
    os.close(os.open(path, flags, MODE))


def take_back(path: str) -> None:
    """Take other users' permissions away from a SQLite file, and from those that SQLite keeps beside it."""
    for end in _BESIDE:
        try:
            if os.stat(path + end).st_mode & 0o077:
                os.chmod(path + end, MODE)
        except (FileNotFoundError, PermissionError):
            continue  # it is not there; or it is another user's, and so is the say
