"""Detects that an open file was deleted or replaced: what is written to it is lost when it is closed."""

from __future__ import annotations

import os


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
        """Why the file must not be written to, or None. Asks the file system each time."""
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
