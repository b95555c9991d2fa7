"""When a run that goes on is judged again: soon after something changed, seldom while nothing does."""

from __future__ import annotations

from enum import IntEnum

LEAST_MS = 60_000
FEW_CHANGES = 5
"""A run that changes again and again is judged each so many minutes."""
FOLLOW_MS, FOLLOWED_MS = 120_000, 30 * 60_000
"""In the half hour after a change, criteria of minutes are met: the first judgement after two of them."""
GROWTH = 0.5
"""The time to the next judgement grows with the time since the change."""
MOST_MS = 4 * 60 * 60_000
MAX_LOAD = 0.05
"""Of a core, at most, however much changes."""


class Urgency(IntEnum):
    """Why a judgement is due: the lower, the sooner, where there is not time for all."""

    STOPPED = 0
    CHANGED = 1
    FIRST = 2
    FOLLOWING = 3
    QUIET = 4


class JudgementPace:
    """Says when a judgement is due.

    Args:
        started_ms: of the run, ms UTC. The start counts as a change that is not urgent.
    """

    def __init__(self, started_ms: int) -> None:
        self._started_ms = self._changed_ms = self._judged_ms = started_ms
        self._cost_s = 0.0
        self._has_changed = self._has_stopped = self._was_judged = False
        self._changes = 0

    def change(self, time_ms: int, has_stopped: bool) -> None:
        """Take note that something changed.

        Args:
            has_stopped: whether something does not go on, rather than otherwise.
        """
        self._has_stopped = has_stopped or (self._has_changed and self._has_stopped)
        self._changed_ms = max(self._changed_ms, time_ms)
        self._has_changed = True

    def judged(self, now_ms: int, cost_s: float) -> None:
        """Take note of a judgement, and of the CPU time that it took."""
        if self._has_changed:
            self._changes = min(self._changes + 1, FEW_CHANGES)
        elif now_ms - self._changed_ms >= FOLLOWED_MS:
            self._changes = 0
        self._judged_ms, self._cost_s = now_ms, cost_s
        self._has_changed, self._was_judged = False, True

    def waited_ms(self, now_ms: int) -> int:
        """Return the time since the last judgement, or since the start."""
        return now_ms - self._judged_ms

    def due(self, now_ms: int) -> Urgency | None:
        """Return why a judgement is due; None if it is not."""
        waited_ms = self.waited_ms(now_ms)
        if waited_ms < max(LEAST_MS, self._changes * LEAST_MS, 1000 * self._cost_s / MAX_LOAD):
            return None
        if self._has_changed:
            return Urgency.STOPPED if self._has_stopped else Urgency.CHANGED
        if not self._was_judged:
            return Urgency.FIRST
        age_ms = self._judged_ms - self._changed_ms
        if waited_ms < min(max(FOLLOW_MS, GROWTH * age_ms), MOST_MS):
            return None
        if age_ms >= FOLLOWED_MS or self._changed_ms <= self._started_ms:
            return Urgency.QUIET
        return Urgency.STOPPED if self._has_stopped else Urgency.FOLLOWING
