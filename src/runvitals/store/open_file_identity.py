"""Whether a file that this process writes to is still the one under its name.

What is written to a file that was deleted, or replaced by another one, is lost when it is closed.
"""

from __future__ import annotations

import os


class OpenedFile:
    """A file that has just been opened.

    Example:
        >>> log = OpenedFile("/var/lib/runvitals/log.db")
        >>> log.problem()  # None, as long as it is there
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._identity = _identity(path)

    def problem(self) -> str | None:
        """Why nothing may be written to it at present; asks the file system each time."""
        try:
            identity = _identity(self.path)
        except FileNotFoundError:
            return f"{self.path} was deleted: put it back from a backup, and start the server again"
        except OSError as error:
            return f"{self.path} cannot be reached: {error.strerror}"
        if identity != self._identity:
            return f"{self.path} was replaced by another file: start the server again"
        return None


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
