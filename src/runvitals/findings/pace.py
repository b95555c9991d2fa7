"""When a run that goes on is judged again: soon after something changed, seldom while nothing does."""

from __future__ import annotations

LEAST_MS = 60_000
FOLLOW_MS, FOLLOWED_MS = 120_000, 30 * 60_000
"""In the half hour after a change, criteria of minutes are met: a judgement each two minutes."""
GROWTH = 0.25
"""Later, the time to the next judgement grows with the time since the change."""
MAX_LOAD = 0.05
"""Of a core, at most, however much changes."""
SAMPLE_S = 20e-6
"""CPU time a sample, while nothing changes."""
MOST_MS = 4 * 60 * 60_000


class JudgementPace:
    """Says when a judgement is due.

    Args:
        started_ms: of the run, ms UTC. The start counts as a change.
    """

    def __init__(self, started_ms: int) -> None:
        self._changed_ms = self._judged_ms = started_ms
        self._samples = 0
        self._cost_s = 0.0
        self._has_changed = False

    def change(self, time_ms: int) -> None:
        """Take note that something changed."""
        self._changed_ms = max(self._changed_ms, time_ms)
        self._has_changed = True

    def sample(self, count: int = 1) -> None:
        """Take note of samples."""
        self._samples += count

    def judged(self, now_ms: int, cost_s: float) -> None:
        """Take note of a judgement, and of the CPU time that it took."""
        self._judged_ms, self._cost_s = now_ms, cost_s
        self._samples, self._has_changed = 0, False

    def is_due(self, now_ms: int) -> bool:
        """Return whether a judgement is due."""
        waited_ms = now_ms - self._judged_ms
        if waited_ms < max(LEAST_MS, 1000 * self._cost_s / MAX_LOAD):
            return False
        age_ms = self._judged_ms - self._changed_ms
        if self._has_changed or age_ms < FOLLOWED_MS:
            return self._has_changed or waited_ms >= FOLLOW_MS
        if waited_ms >= MOST_MS:
            return True
        return waited_ms >= GROWTH * age_ms and self._cost_s <= SAMPLE_S * self._samples
