"""Limit how often expensive or failing calls are made."""

from __future__ import annotations

import time

from runvitals.base.backoff import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.nvidia.nvml import NvmlError

MAX_BACKOFF_S = 300.0
FIRST_BACKOFF_S = 1.0


class Paced:
    """Limits the share of time that a call takes, however slow it is on this machine.

    Listing processes takes 50 µs with one driver and 4.5 ms with another, during which the driver holds a
    lock and the application waits. So the duration of a call decides when the next one is due.

    Args:
        share: the largest share of the time that the calls may take.
        least_s: the shortest interval, however fast the calls are.

    Example:
        >>> paced = Paced(share=0.01)
        >>> if paced.due(mono_s):
        ...     began_ns = paced.begin()
        ...     ask()
        ...     paced.end(mono_s, began_ns)  # took 20 ms: the next one in 2 s
    """

    __slots__ = ("_least_s", "_next_s", "_share")

    def __init__(self, share: float, least_s: float = 0.0) -> None:
        self._share = share
        self._least_s = least_s
        self._next_s = float("-inf")

    def due(self, mono_s: float) -> bool:
        """Return whether the call may be made again."""
        return mono_s >= self._next_s

    def begin(self) -> int:
        """Note when the call begins."""
        return time.perf_counter_ns()

    def end(self, mono_s: float, began_ns: int) -> None:
        """Note how long the call took."""
        took_s = (time.perf_counter_ns() - began_ns) / 1e9
        # Half a per cent too early counts as due: with the jitter of a 1 s clock, 5 s would become 6 s.
        self._next_s = mono_s + max(self._least_s * 0.995, took_s / self._share)


class Retries:
    """Decide when to retry a failed reading.

    After 1, 2, 4 … s, at most 5 minutes; a reading that the device does not support, after 5 minutes. Retries
    never stop.

    Attributes:
        reason: the last error; None while the reading works.
    """

    __slots__ = ("_backoff", "reason")

    def __init__(self) -> None:
        self._backoff = Backoff(FIRST_BACKOFF_S, MAX_BACKOFF_S)
        self.reason: str | None = None

    def due(self, mono_s: float) -> bool:
        """Return whether the reading may be tried again."""
        return mono_s >= self._backoff.until_s

    def note_failure(self, mono_s: float, error: NvmlError, *, for_good: bool) -> None:
        """Note a failure, and wait longer."""
        self._backoff.note_failure(mono_s, MAX_BACKOFF_S if for_good else None)
        self.reason = error.reason

    def note_success(self) -> None:
        """Note a success, and stop waiting."""
        if self.reason is not None:
            self._backoff.note_success()
            self.reason = None
