"""The time of day, for a server whose system clock may be set while it runs.

The state of a run depends on how long ago its writers last reported. If the system clock is set ahead, all of
them would become lost; if it is set back, none of them for years. So `Clock` does not follow a jump
immediately: `ingest.heartbeats` first moves the times of the last reports by the same amount.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_JUMP_MS = 5_000
"""A larger difference means that the clock was set."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _since_boot_ms() -> int:
    """A steady clock. It includes suspend where the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000


class Due:
    """When something is to be done again: after some time, or when the clock was set back.

    The next time alone would not come for years after a clock that was years ahead.

    Example:
        >>> due = Due()
        >>> due.at(1000)
        True
        >>> due.wait(1000, 60_000)
        >>> due.at(2000), due.at(61_000), due.at(500)
        (False, True, True)
    """

    def __init__(self) -> None:
        self._since_ms = self._until_ms = 0

    def at(self, now_ms: int) -> bool:
        """Return whether it is to be done now."""
        return not self._since_ms <= now_ms < self._until_ms

    def wait(self, now_ms: int, wait_ms: int) -> None:
        """Do it again after some time."""
        self._since_ms, self._until_ms = now_ms, now_ms + wait_ms

    def at_once(self) -> None:
        """Do it the next time."""
        self._until_ms = 0


class Clock:
    """The time of day in ms UTC. After a jump, the time without the jump until `follow` is called.

    Example:
        >>> clock = Clock()
        >>> clock() // 1000 == int(time.time())
        True
    """

    def __init__(
        self, wall_ms: Callable[[], int] = _wall_ms, steady_ms: Callable[[], int] = _since_boot_ms
    ) -> None:
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        self._ahead_ms = self._first_ahead_ms = wall_ms() - steady_ms()

    def __call__(self) -> int:
        """Return the time in ms since 1970, as if the clock had not jumped."""
        wall_ms, steady_ms = self._wall_ms(), self._steady_ms()
        ahead_ms = wall_ms - steady_ms
        if abs(ahead_ms - self._ahead_ms) > _JUMP_MS:
            return steady_ms + self._ahead_ms
        self._ahead_ms = ahead_ms  # NTP slews it, or the two clocks were read a moment apart
        return wall_ms

    def jumped_ms(self) -> int:
        """The size of a jump that is not followed yet; 0 without one."""
        by_ms = self._wall_ms() - self._steady_ms() - self._ahead_ms
        return by_ms if abs(by_ms) > _JUMP_MS else 0

    def follow(self, by_ms: int) -> None:
        """Accept a jump of `by_ms`."""
        self._ahead_ms += by_ms

    def earliest(self) -> int:
        """The earlier of the time of day and the time as if the clock had never been set.

        For deletion by age, which cannot be undone: a clock that is set ahead must not delete anything.
        """
        return min(self(), self._steady_ms() + self._first_ahead_ms)
