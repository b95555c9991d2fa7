"""The time of day that a run's records carry.

The system's clock is set: by a person, by NTP, by a machine whose clock has no battery. A run whose records
jumped with it would last 66 years, or end before it began. So a run reads the system's clock once for each
boot of a machine, and counts on by the time since that boot, which nobody sets and which goes on while the
machine sleeps. All processes of a run on one machine share that reading.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# So far the system's clock and a run's may be apart without anybody having set the former.
JUMP_MS = 2000
_NS = 1_000_000
_LATEST_MS = 1 << 48  # in the year 10889
_BOOT_ID = "/proc/sys/kernel/random/boot_id"

if hasattr(time, "clock_gettime_ns"):
    # CLOCK_MONOTONIC of macOS counts on in sleep, that of Linux does not.
    _SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def since_boot_ns() -> int:
        """Nanoseconds since the machine was started."""
        return time.clock_gettime_ns(_SINCE_BOOT)

else:  # Windows
    since_boot_ns = time.monotonic_ns


class Clock:
    """Milliseconds UTC that go forward evenly, whatever becomes of the system's clock.

    Args:
        anchor_ms: what this clock shows at the machine's start; None: what the system's clock says now.
        wall_ns: the system's clock.
        steady_ns: time since the machine's start.

    Example:
        >>> clock = Clock()
        >>> clock.now_ms()
        1760000000000
        >>> clock.ahead_ms()   # the system's clock was set to the year 2037 in the meantime
        354240000000
    """

    __slots__ = ("_steady_ns", "_wall_ns", "anchor_ms")

    def __init__(
        self,
        anchor_ms: int | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = since_boot_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self.anchor_ms = wall_ns() // _NS - steady_ns() // _NS if anchor_ms is None else anchor_ms

    def now_ms(self) -> int:
        """The time now."""
        return self._steady_ns() // _NS + self.anchor_ms

    def since_boot_ms(self) -> int:
        """How long the machine has been up."""
        return self._steady_ns() // _NS

    def ahead_ms(self) -> int:
        """How far the system's clock is ahead of this one; 0 where nobody has set it."""
        ahead_ms = self._wall_ns() // _NS - self.now_ms()
        return ahead_ms if abs(ahead_ms) >= JUMP_MS else 0


def boot_id() -> str:
    """What tells this boot of the machine from the next, or "" where the system does not say."""
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def clock_of(start: Mapping[str, Any], this_boot: str) -> Clock | None:
    """The clock of a writer, by its START record, if it is one of this boot of this machine; else None."""
    time_ms, since_ms = start.get("t"), start.get("since_boot_ms")
    if not this_boot or start.get("boot_id") != this_boot:
        return None
    if not isinstance(time_ms, int) or not isinstance(since_ms, int):
        return None  # an older writer, or one that tells of other times than its own
    return Clock(time_ms - since_ms) if 0 <= since_ms <= time_ms < _LATEST_MS else None
