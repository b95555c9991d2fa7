"""Facts about processes that are not children of the tests."""

from __future__ import annotations

from pathlib import Path


def has_ended(pid: int) -> bool:
    """Whether a process has ended and closed its files; a zombie has. Its command line is gone earlier."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")
