"""Detects which of a run's processes the kernel killed for lack of memory.

The kernel counts such kills per cgroup or per host, and does not report which processes it killed. When the
count has risen since the last check, it is attributed to the processes that are being killed at that moment,
and not to processes that are killed later.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from runvitals.monitoring.monitor.watched_processes import WatchedProcess

    class OomKillCount(Protocol):
        """`collectors.plumbing.cgroup.OomKills`."""

        host_wide: bool

        def read(self) -> int | None:
            """Read the count; None if it is unknown."""


CHECK_EVERY_S = 1.0
HOST_CHECK_EVERY_S = 10.0  # the count of the whole host is in a long file


class OomKillDetector:
    """Attributes out-of-memory kills to the run's processes.

    Args:
        count: the kernel's count of such kills.

    Attributes:
        check_at_s: when to call `check` again.

    Example:
        >>> detector = OomKillDetector(cgroup.OomKills(scope))
        >>> if now_s >= detector.check_at_s:
        ...     detector.check(now_s, processes)
        >>> detector.was_oom_killed(process)    # a process that SIGKILL has ended
        True
    """

    __slots__ = ("_count", "_every_s", "_last_count", "check_at_s")

    def __init__(self, count: OomKillCount) -> None:
        self._count = count
        self._every_s = HOST_CHECK_EVERY_S if count.host_wide else CHECK_EVERY_S
        self._last_count = self._read()
        self.check_at_s = 0.0

    def check(self, now_s: float, processes: Iterable[WatchedProcess]) -> None:
        """Read the count.

        If it has risen, flag the processes that are being killed: a large process takes seconds from the kill
        to its end.
        """
        self.check_at_s = now_s + self._every_s * 0.995
        before, self._last_count = self._last_count, self._read()
        if _has_risen(before, self._last_count):
            for process in processes:
                if process.is_being_killed():
                    process.oom_killed = True

    def was_oom_killed(self, process: WatchedProcess) -> bool:
        """Return whether a process that SIGKILL has ended was killed for lack of memory."""
        return process.oom_killed or _has_risen(self._last_count, self._read())

    def _read(self) -> int | None:
        try:
            return self._count.read()
        except OSError:
            return None  # the cgroup was removed with its last process


def _has_risen(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before
