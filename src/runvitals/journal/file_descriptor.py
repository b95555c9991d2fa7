"""File descriptors in a process that runs other people's code, which may close any of them
(`os.closerange`), or have few.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

# A descriptor far above those that programs use is not taken for one of theirs. Those beyond a thousand would
# cost the kernel a larger table.
_HIGH = 896
_HIGHEST = 1024
FEW = 64
"""With fewer descriptors than this in all, none is kept open from one record to the next."""

Identity = tuple[int, int]


def identity(fd: int) -> Identity:
    """Which file or socket a descriptor is of: device and inode. 1 µs.

    Raises:
        OSError: it is closed.
    """
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def is_still(fd: int, known: Identity) -> bool:
    """Whether a descriptor is of the same file or socket as when `known` was its identity."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return status.st_ino == known[1] and status.st_dev == known[0]


def raised(fd: int) -> int:
    """A copy of a descriptor with a high number; the low one is closed. Itself, where there can be none."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl

        with Room():
            limit = min(os.sysconf("SC_OPEN_MAX"), _HIGHEST)
            high = fcntl(fd, F_DUPFD_CLOEXEC, min(_HIGH, limit - limit // 8))
    except (ImportError, AttributeError, OSError, ValueError):
        return fd
    os.close(fd)
    return high


def are_few() -> bool:
    """Whether this process may have so few descriptors that we must not keep one."""
    try:
        limit = os.sysconf("SC_OPEN_MAX")
    except (AttributeError, OSError, ValueError):
        return False
    return 0 <= limit < FEW and not Room().possible


class Room:
    """While it is open, this process may have more descriptors, where the system lets it raise its own limit.

    The limit is on numbers: a descriptor that is beyond it afterwards stays open, and takes none of those
    that the program has.

    Example:
        >>> with Room():
        ...     fd = raised(os.open(path, os.O_RDONLY))
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
                self.possible = hard == RLIM_INFINITY or hard > max(soft, FEW)
        except (ImportError, AttributeError, OSError, ValueError):
            return

    def __enter__(self) -> Room:
        if self.possible and self._before is not None:
            _set_limit(min(_HIGHEST, self._before[1]) if self._before[1] >= 0 else _HIGHEST, self._before[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.possible and self._before is not None:
            _set_limit(*self._before)


def _set_limit(soft: int, hard: int) -> None:
    from resource import RLIMIT_NOFILE, setrlimit

    try:
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    except (OSError, ValueError):
        return  # a sandbox may forbid it: then there are no more than before
