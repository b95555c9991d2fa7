"""Keeps the monitor on other processors than the training, if there are others.

The scheduler often wakes the monitor on the training's processor although another one is idle. On two
processors it did so for every fourth sample, and each of these samples delayed the training by 0.5 ms.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from runvitals.monitoring.monitor.watched_processes import WatchedProcess

# An update costs 15 to 20 µs. While the training stays where it is, the time between updates doubles.
EVERY_S = 2.0
MAX_INTERVAL_S = 8.0
# With more processors than this, the scheduler finds an idle one.
MAX_PROCESSORS = 16


class CpuAffinity:
    """Restricts this process to processors that the training's processes were not last seen on.

    Args:
        allowed: the processors that this process may use.

    Attributes:
        update_at_s: when to call `update` again.

    Example:
        >>> affinity = CpuAffinity.of_this_process()
        >>> affinity.update(now_s, processes)   # on processors 0 and 1, with the training on 0
        >>> os.sched_getaffinity(0)
        {1}
    """

    __slots__ = ("_allowed", "_current", "_every_s", "update_at_s")

    def __init__(self, allowed: Set[int]) -> None:
        self._allowed = allowed
        self._current = allowed
        self._every_s = EVERY_S
        self.update_at_s = 0.0

    @classmethod
    def of_this_process(cls) -> CpuAffinity | None:
        """None if there is only one processor, or so many that it makes no difference, or it is unknown."""
        try:
            allowed = os.sched_getaffinity(0)
        except (AttributeError, OSError):  # not on this system, or a seccomp filter forbids it
            return None
        return cls(allowed) if 1 < len(allowed) <= MAX_PROCESSORS else None

    def update(self, now_s: float, processes: Iterable[WatchedProcess]) -> None:
        """Adapt to where the processes run now."""
        processors = self._allowed - {process.processor() for process in processes}
        if not processors:
            processors = self._allowed  # the training uses all of them
        is_unchanged = processors == self._current
        self._every_s = min(2 * self._every_s, MAX_INTERVAL_S) if is_unchanged else EVERY_S
        self.update_at_s = now_s + self._every_s
        if is_unchanged:
            return
        try:
            os.sched_setaffinity(0, processors)
        except OSError:  # forbidden, or the processors were taken offline: give up
            self.update_at_s = float("inf")
            return
        self._current = processors
