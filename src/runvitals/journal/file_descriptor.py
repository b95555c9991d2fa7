"""File descriptors in a process that runs user code.

That code may close any of them (`os.closerange`) or need nearly all that the limit allows.
"""

from __future__ import annotations

import os

# High enough to stay clear of the numbers that programs use. Above 1,024 the kernel would need a larger
# table.
_HIGH = 896
_HIGHEST = 1024
LOW_LIMIT = 64
"""If the process may have fewer descriptors than this, none is kept open between records."""

Identity = tuple[int, int]


def identity(fd: int) -> Identity:
    """Return device and inode of a descriptor's file or socket, or raise OSError if it is closed. 1 µs."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def is_still(fd: int, identity: Identity) -> bool:
    """Return whether a descriptor still refers to the file or socket with the identity `known`."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return status.st_ino == identity[1] and status.st_dev == identity[0]


def move_to_high_number(fd: int) -> int:
    """Move a descriptor to a high number and close the low one. Returns `fd` itself if that fails."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl

        with HigherLimit():
            limit = min(os.sysconf("SC_OPEN_MAX"), _HIGHEST)
            high = fcntl(fd, F_DUPFD_CLOEXEC, min(_HIGH, limit - limit // 8))
    except (ImportError, AttributeError, OSError, ValueError):
        return fd
    os.close(fd)
    return high


def is_limit_low() -> bool:
    """Return whether this process may have so few descriptors that none should be kept open."""
    try:
        limit = os.sysconf("SC_OPEN_MAX")
    except (AttributeError, OSError, ValueError):
        return False
    return 0 <= limit < LOW_LIMIT and not HigherLimit().possible


class HigherLimit:
    """Raises this process's soft limit on descriptors while it is entered, if the hard limit allows.

    The limit applies to new descriptor numbers: a descriptor above it stays open after the limit is lowered
    again, and does not count against the program's own.

    Attributes:
        possible: whether the limit can be raised.

    Example:
        >>> with HigherLimit():
        ...     fd = move_to_high_number(os.open(path, os.O_RDONLY))
    """

    __slots__ = ("_before", "possible")

    def __init__(self) -> None:
        self.possible = False
        self._before: tuple[int, int] | None = None
        try:
            if 0 <= os.sysconf("SC_OPEN_MAX") < _HIGHEST:
                from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

                soft, hard = getrlimit(RLIMIT_NOFILE)
                self._before = soft, hard
                self.possible = hard == RLIM_INFINITY or hard > max(soft, LOW_LIMIT)
        except (ImportError, AttributeError, OSError, ValueError):
            return

    def __enter__(self) -> HigherLimit:
        if self.possible and self._before is not None:
            _set_limit(min(_HIGHEST, self._before[1]) if self._before[1] >= 0 else _HIGHEST, self._before[1])
        return self

    def __exit__(self, *_: object) -> None:
        if self.possible and self._before is not None:
            _set_limit(*self._before)


def _set_limit(soft: int, hard: int) -> None:
    from resource import RLIMIT_NOFILE, setrlimit

    try:
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    except (OSError, ValueError):
        return  # a sandbox may forbid it; then the limit stays as it is
