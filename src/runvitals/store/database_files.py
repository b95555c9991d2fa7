"""Checks of a database's files: that SQLite can open them, and that the open one is still at its path."""

from __future__ import annotations

import os


def obstacle(path: str) -> str | None:
    """Return why SQLite cannot open a database: something else has the name of one of its companion files.

    Example:
        >>> obstacle("/var/lib/runvitals/log.db")  # None if the two are files, or do not exist
    """
    for name in (f"{path}-wal", f"{path}-shm"):
        if os.path.lexists(name) and not os.path.isfile(name):
            return f"{name} is not a file, so {os.path.basename(path)} cannot be opened: move it away"
    return None


class OpenedFile:
    """Remembers the identity (device and inode) of a file that has just been opened.

    Example:
        >>> log = OpenedFile("/var/lib/runvitals/log.db")
        >>> log.problem()  # None while the file exists
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._identity = _identity(path)

    def problem(self) -> str | None:
        """Return why the file must not be written to, or None. Asks the file system each time."""
        try:
            identity = _identity(self.path)
        except FileNotFoundError:
            return f"{self.path} was deleted: restore it from a backup and restart the server"
        except OSError as error:
            return f"{self.path} could not be accessed: {error.strerror}"
        if identity != self._identity:
            return f"{self.path} was replaced by another file: restart the server"
        return None


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
