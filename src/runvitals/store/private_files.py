"""Files that only their owner can read and write, regardless of the folder and the umask."""

from __future__ import annotations

import os

MODE = 0o600
_SUFFIXES = ("", "-wal", "-shm", "-journal")


def create(path: str, exclusive: bool = False) -> None:
    """Create a file. SQLite gives its companion files (`-wal`, `-shm`, `-journal`) the same mode.

    Raises:
        OSError: it could not be created; or it exists already, with `exclusive`.
    """
    flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if exclusive else 0) | getattr(os, "O_CLOEXEC", 0)
    os.close(os.open(path, flags, MODE))


def restrict(path: str) -> None:
    """Remove the permissions of other users from a SQLite file and its companion files."""
    for suffix in _SUFFIXES:
        try:
            if os.stat(path + suffix).st_mode & 0o077:
                os.chmod(path + suffix, MODE)
        except (FileNotFoundError, PermissionError):
            continue  # the file does not exist, or its owner, another user, decides
