"""The time of day, where somebody may set the clock while a server runs.

Whether a run is running is a question of how long ago its writers were heard. A clock that is set would make
all of them lost, or none of them for years. So a jump is not followed at once: `Heartbeats` first moves what
was heard along with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_JUMP_MS = 5_000
"""What the clock is off by at most without having been set."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _since_boot_ms() -> int:
    """Goes on evenly, also while the machine sleeps, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000


class Clock:
    """The time of day in ms UTC; after a jump the time that it would be without it, until `follow`.

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
        wall_ms, steady_ms = self._wall_ms(), self._steady_ms()
        ahead_ms = wall_ms - steady_ms
        if abs(ahead_ms - self._ahead_ms) > _JUMP_MS:
            return steady_ms + self._ahead_ms
        self._ahead_ms = ahead_ms  # it is slewed, or a little off
        return wall_ms

    def jumped_ms(self) -> int:
        """By how much the clock was set, and that is not followed yet; 0: it was not."""
        by_ms = self._wall_ms() - self._steady_ms() - self._ahead_ms
        return by_ms if abs(by_ms) > _JUMP_MS else 0

    def follow(self, by_ms: int) -> None:
        """Go by the clock as it was set."""
        self._ahead_ms += by_ms

    def earliest(self) -> int:
        """The time of day, or the earlier time that it would be had the clock not been set since the start.

        For what cannot be undone: nothing is deleted for its age because a clock was set ahead.
        """
        return min(self(), self._steady_ms() + self._first_ahead_ms)
