"""Which of a run's processes the kernel killed for want of memory.

The kernel counts such kills, in a cgroup or on the whole host, and does not say whom they hit. A rise of the
count since it was last looked at is laid to the processes that are being killed at that moment, and to none
that is killed later.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from runvitals.monitor.processes import Process

    class KillCount(Protocol):
        """`collectors.cgroup.OomKills`."""

        host_wide: bool

        def read(self) -> int | None: ...


LOOK_EVERY_S = 1.0
HOST_LOOK_EVERY_S = 10.0  # the whole host's count stands in a long file


class MemoryKills:
    """Out-of-memory kills as the run's processes meet them.

    Args:
        count: the kernel's.

    Attributes:
        look_at_s: when to `look` again.

    Example:
        >>> kills = MemoryKills(cgroup.OomKills(scope))
        >>> if now_s >= kills.look_at_s:
        ...     kills.look(now_s, processes)
        >>> kills.hit(process)             # one that died of SIGKILL
        True
    """

    __slots__ = ("_count", "_every_s", "_known", "look_at_s")

    def __init__(self, count: KillCount) -> None:
        self._count = count
        self._every_s = HOST_LOOK_EVERY_S if count.host_wide else LOOK_EVERY_S
        self._known = self._read()
        self.look_at_s = 0.0

    def look(self, now_s: float, processes: Iterable[Process]) -> None:
        """Take note of the count. A large process takes seconds from its kill to its end: where the count has
        risen, those that are on their way out are remembered.
        """
        self.look_at_s = now_s + self._every_s * 0.995
        before, self._known = self._known, self._read()
        if _risen(before, self._known):
            for process in processes:
                if process.dying():
                    process.short_of_memory = True

    def hit(self, process: Process) -> bool:
        """Whether a process that died of SIGKILL was killed for want of memory."""
        return process.short_of_memory or _risen(self._known, self._read())

    def _read(self) -> int | None:
        try:
            return self._count.read()
        except OSError:
            return None  # the cgroup was removed with its last process


def _risen(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before
