"""How often a sender of another system sends: without samples for a few intervals its run counts as lost."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final

DEFAULT_S: Final = 60.0
"""Until a second time is seen: the default of Prometheus' scrapes and of OpenTelemetry's exports."""
_INTERVALS: Final = 3
"""Senders gather samples, and repeat requests that failed: so many intervals without a request are normal."""
_GAPS: Final = 5
_MIN_INTERVAL_S: Final = 1.0
_MAX_S: Final = 86_400.0
_SAME: Final = 1.25
"""Changes up to this factor are noise, which needs no write to the database."""


class SendingInterval:
    """The longest normal time between two requests of a host, from the times of its samples.

    Example:
        >>> interval = SendingInterval()
        >>> for t in (0, 15_000, 30_000):
        ...     interval.add(t)
        >>> interval.seconds
        45.0
    """

    def __init__(self) -> None:
        self.seconds = DEFAULT_S
        self._newest_ms: int | None = None
        self._gaps_ms: deque[int] = deque(maxlen=_GAPS)

    @property
    def is_known(self) -> bool:
        """Whether samples of several times have been seen."""
        return bool(self._gaps_ms)

    def add(self, time_ms: int) -> None:
        """Add the time of samples. Times before the newest one say nothing: a sender may repeat requests."""
        newest, self._newest_ms = self._newest_ms, max(time_ms, self._newest_ms or time_ms)
        if newest is None or time_ms <= newest:
            return
        self._gaps_ms.append(time_ms - newest)
        seen = min(max(_INTERVALS * median(self._gaps_ms) / 1000, _MIN_INTERVAL_S), _MAX_S)
        if not self.seconds / _SAME <= seen <= self.seconds * _SAME:
            self.seconds = seen
