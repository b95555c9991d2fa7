"""The clock that the timestamps of a run's records come from.

The system clock can be set during a run: by a user, by NTP, or after a boot without a battery-backed clock.
If timestamps followed it, a run could last 66 years or end before it began. A run therefore reads the system
clock once per boot of a machine and adds the time since boot, which cannot be set and includes time spent in
suspend. All processes of a run on one machine share that one reading.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# A smaller difference between the system clock and a run's clock is drift, not a change of the system clock.
JUMP_MS = 2000
_NS = 1_000_000
_LATEST_MS = 1 << 48  # in the year 10889
_BOOT_ID = "/proc/sys/kernel/random/boot_id"

if hasattr(time, "clock_gettime_ns"):
    # CLOCK_MONOTONIC includes suspend on macOS but not on Linux, which has CLOCK_BOOTTIME for that.
    _SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def since_boot_ns() -> int:
        """Nanoseconds since the machine booted."""
        return time.clock_gettime_ns(_SINCE_BOOT)

else:  # Windows
    since_boot_ns = time.monotonic_ns


class RunClock:
    """UTC in milliseconds that advances steadily even if the system clock is set.

    Args:
        anchor_ms: this clock's time at boot; None: computed from the system clock now.
        wall_ns: the system clock.
        steady_ns: time since boot.

    Example:
        >>> clock = RunClock()
        >>> clock.now_ms()
        1760000000000
        >>> clock.ahead_ms()   # the system clock was set to the year 2037 in the meantime
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
        """Return the current time, ms UTC."""
        return self._steady_ns() // _NS + self.anchor_ms

    def since_boot_ms(self) -> int:
        """Time since boot, ms."""
        return self._steady_ns() // _NS

    def ahead_ms(self) -> int:
        """Measure how far the system clock is ahead of this one; 0 if they differ by less than `JUMP_MS`."""
        ahead_ms = self._wall_ns() // _NS - self.now_ms()
        return ahead_ms if abs(ahead_ms) >= JUMP_MS else 0


def boot_id() -> str:
    """Return an id that changes with every boot of the machine; "" if the system has none."""
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def writer_clock(start: Mapping[str, Any], this_boot: str) -> RunClock | None:
    """Return the clock of the writer with this START record.

    None if it ran on another machine or before a reboot.
    """
    time_ms, since_ms = start.get("t"), start.get("since_boot_ms")
    if not this_boot or start.get("boot_id") != this_boot:
        return None
    if not isinstance(time_ms, int) or not isinstance(since_ms, int):
        return None  # an older writer, an import or a simulation
    return RunClock(time_ms - since_ms) if 0 <= since_ms <= time_ms < _LATEST_MS else None
