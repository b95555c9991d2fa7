"""The files that SQLite creates next to a database: its write-ahead log, and the index of that."""

from __future__ import annotations

import os


def obstacle(path: str) -> str | None:
    """Why SQLite cannot open a database: what has the name of one of its companion files is no file.

    Example:
        >>> obstacle("/var/lib/runvitals/log.db")  # None if the two are files, or do not exist
    """
    for name in (f"{path}-wal", f"{path}-shm"):
        if os.path.lexists(name) and not os.path.isfile(name):
            return f"{name} is not a file, so {os.path.basename(path)} cannot be opened: move it away"
    return None
