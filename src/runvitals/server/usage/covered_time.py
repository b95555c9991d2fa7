"""The covered time of a run on a host and day: the time in which it was sampled."""

from __future__ import annotations

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.server.usage.days import Day
from runvitals.server.usage.intervals import Interval
from runvitals.server.usage.windows import Rules


class CoveredTime:
    """Finds the covered time from the times of samples, window by window.

    Attributes:
        done_ms: until when times were added.

    Example:
        >>> time = CoveredTime(day, Rules(silence_ms=10_000))
        >>> for end_ms in window_ends(day, rules, time.done_ms, now_ms):
        ...     time.add(end_ms, times(time.done_ms, end_ms))
        >>> time.intervals
        [(1767222000000, 1767225600000)]
    """

    def __init__(self, day: Day, rules: Rules) -> None:
        self._day = day
        self._rules = rules
        self._covered: list[Interval] = []
        self._last_ms: int | None = None
        self.done_ms = day.start_ms - rules.margin_ms

    @property
    def intervals(self) -> list[Interval]:
        """Sorted and disjoint."""
        return list(self._covered)

    def copy(self) -> CoveredTime:
        """A copy, to which a window can be added that is not complete yet."""
        copied = CoveredTime(self._day, self._rules)
        copied._covered, copied._last_ms, copied.done_ms = list(self._covered), self._last_ms, self.done_ms
        return copied

    def add(self, until_ms: int, times: Integers) -> None:
        """Add the times of samples, and the recorded starts and ends of monitors, before `until_ms`.

        Args:
            times: ascending and unique.
        """
        self.done_ms = until_ms
        if not len(times):
            return
        starts, ends = self._steps(times)
        self._last_ms = int(times[-1])
        if not len(starts):
            return
        breaks = np.flatnonzero(starts[1:] != ends[:-1])
        first = starts[np.concatenate(([0], breaks + 1))].tolist()
        last = ends[np.concatenate((breaks, [len(ends) - 1]))].tolist()
        for start, end in zip(first, last, strict=True):
            if self._covered and self._covered[-1][1] == start:
                self._covered[-1] = self._covered[-1][0], end
            else:
                self._covered.append((start, end))

    def _steps(self, times: Integers) -> tuple[Integers, Integers]:
        """The intervals between consecutive times that are close enough, cut to the day."""
        every = times if self._last_ms is None else np.concatenate(([self._last_ms], times))
        starts, ends = every[:-1], every[1:]
        is_covered = ends - starts <= self._rules.silence_ms
        starts = np.maximum(starts[is_covered], self._day.start_ms)
        ends = np.minimum(ends[is_covered], self._day.end_ms)
        inside = starts < ends
        return starts[inside], ends[inside]
