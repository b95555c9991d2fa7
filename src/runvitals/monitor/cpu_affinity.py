"""On which processors the monitor runs: on others than the training, where there are others.

The scheduler often wakes the monitor on the training's processor although another one is idle. On two
processors it did so for every fourth sample, and each of those held the training up for 0.5 ms.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from runvitals.monitor.processes import Process

EVERY_S = 2.0
# Beyond so many processors the scheduler finds an idle one by itself.
MOST_PROCESSORS = 16


class Placement:
    """Keeps this process off the processors that the training's processes were last seen on.

    Args:
        allowed: the processors that this process may use.

    Attributes:
        look_at_s: when to `look` again.

    Example:
        >>> placement = Placement.of_this_process()
        >>> placement.look(now_s, processes)   # on processors 0 and 1, with the training on 0
        >>> os.sched_getaffinity(0)
        {1}
    """

    __slots__ = ("_allowed", "_now", "look_at_s")

    def __init__(self, allowed: Set[int]) -> None:
        self._allowed = allowed
        self._now = allowed
        self.look_at_s = 0.0

    @classmethod
    def of_this_process(cls) -> Placement | None:
        """None where there is nothing to choose, or nothing to gain."""
        if not hasattr(os, "sched_getaffinity"):
            return None
        allowed = os.sched_getaffinity(0)
        return cls(allowed) if 1 < len(allowed) <= MOST_PROCESSORS else None

    def look(self, now_s: float, processes: Iterable[Process]) -> None:
        """Follow the processes if they have moved."""
        self.look_at_s = now_s + EVERY_S
        wanted = self._allowed - {process.processor() for process in processes}
        if not wanted:
            wanted = self._allowed  # the training is everywhere
        if wanted == self._now:
            return
        try:
            os.sched_setaffinity(0, wanted)
        except OSError:  # forbidden, or the processors were taken away: stay where we are, and ask no more
            self.look_at_s = float("inf")
            return
        self._now = wanted
