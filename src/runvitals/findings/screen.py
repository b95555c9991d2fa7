"""Cheap looks at the newest values of a run: whether anything changed since it was last judged.

They decide nothing: after a change all rules look at the run again.
"""

from __future__ import annotations

import numpy as np

from runvitals.findings.windows import MAX_VALUE, Bools, Floats, Integers

_SPREADS = 5.0
_SPREAD_WEIGHT = 0.1
LATE_MS = 120_000
"""A series that is so much later behind the others than ever has ended."""
SILENT_MS = 60_000
"""Steps that stop for so long, and for much longer than they ever took, have stopped."""
_SILENT_GAPS = 2.5
_PACE_SHARE, _PACE_MS = 0.5, 2000.0
"""A step takes another time than usual if both differ so much."""


class LevelScreen:
    """The levels of many series, and whether one left its range.

    A level has changed when it lies outside its range in two looks in a row; then it is the new level, so
    that a change counts once and a slow drift counts each time that it left the range.

    Args:
        counters: which of them grow; then the growth per second counts.
        floors: the smallest change of each that matters; 0: any does, at once.
        shares: the smallest change of each that matters, of its level.
        may_fall: a lower level counts only as what later ones are compared with.
    """

    def __init__(self, counters: Bools, floors: Floats, shares: Floats, may_fall: bool = False) -> None:
        self._counters, self._floors, self._shares = counters, floors, shares
        self._may_fall = may_fall
        nothing = np.full(len(floors), np.nan)
        self._level, self._before, self._total = nothing.copy(), nothing.copy(), nothing.copy()
        self._spread = np.zeros(len(floors))
        self._outside: Bools = np.zeros(len(floors), dtype=np.bool_)
        self._time_ms = 0

    def look(self, time_ms: int, values: Floats) -> bool:
        """Take the values of a moment, and return whether any has a new level. NaN is a gap."""
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.where(np.abs(values) < MAX_VALUE, values, np.nan)
            seconds = max((time_ms - self._time_ms) / 1000, 1e-3)
            growth = (values - self._total) / seconds
            now = np.where(self._counters, np.where(growth >= 0, growth, np.nan), values)
            self._total, self._time_ms = np.where(np.isnan(values), self._total, values), time_ms
            away = np.abs(now - self._level)
            limit = np.maximum(self._floors, self._shares * np.abs(self._level))
            outside = away > np.maximum(limit, _SPREADS * self._spread)
            new = outside & (self._outside | (self._floors == 0))
            has_changed = bool((new & (now > self._level)).any() if self._may_fall else new.any())
            noise = np.abs(now - self._before)
        self._spread = np.where(
            np.isnan(noise), self._spread, self._spread + _SPREAD_WEIGHT * (noise - self._spread)
        )
        self._outside = outside & ~new
        self._before = now
        self._level = np.where(new | np.isnan(self._level), now, self._level)
        return has_changed


class EndScreen:
    """Whether one of many series has no numbers any more while the others go on.

    That is a loss that is NaN, or a device that is gone.

    Args:
        count: of the series.
    """

    def __init__(self, count: int) -> None:
        self._behind_ms: Integers = np.zeros(count, dtype=np.int64)
        self._longest_ms: Integers = np.zeros(count, dtype=np.int64)
        self._has_ended: Bools = np.zeros(count, dtype=np.bool_)
        self._is_first = True

    def look(self, newest_ms: Integers) -> bool:
        """Take the time of the newest number of each, and return whether one has just ended."""
        if not len(newest_ms):
            return False
        behind_ms = newest_ms.max() - newest_ms
        if not (behind_ms.any() or self._behind_ms.any()):
            self._is_first = False
            return False
        goes_on = behind_ms < self._behind_ms
        self._longest_ms = np.maximum(self._longest_ms, np.where(goes_on, self._behind_ms, 0))
        self._behind_ms = behind_ms
        late = behind_ms > 2 * self._longest_ms + LATE_MS
        new = late & ~self._has_ended
        self._has_ended = late
        was_first, self._is_first = self._is_first, False
        return bool(new.any()) and not was_first


class StepScreen:
    """Whether steps stop, go on, or take another time than before.

    Attributes:
        has_stopped: whether they have.
    """

    def __init__(self) -> None:
        self._logged_ms: int | None = None
        self._step = 0.0
        self._heard_ms = 0
        self._gap_ms = 0.0
        self._step_ms = 0.0
        self.has_stopped = False

    def look(self, now_ms: int, logged_ms: int, step: float) -> bool:
        """Take the newest step that is known and when it was logged, and return whether the pace changed.

        Args:
            now_ms: when it is looked at, by the clock of who looks.
        """
        if self._logged_ms is None:
            self._logged_ms, self._step, self._heard_ms = logged_ms, step, now_ms
            self.has_stopped = now_ms - logged_ms > SILENT_MS
            return self.has_stopped
        if logged_ms <= self._logged_ms:
            if self.has_stopped or now_ms - self._heard_ms <= max(_SILENT_GAPS * self._gap_ms, SILENT_MS):
                return False
            self.has_stopped = True
            return True
        gap_ms, steps = logged_ms - self._logged_ms, step - self._step
        step_ms = gap_ms / steps if steps > 0 else self._step_ms
        usual_ms = self._step_ms or step_ms
        changed = self.has_stopped or abs(step_ms - usual_ms) > max(_PACE_SHARE * usual_ms, _PACE_MS)
        self._step_ms = step_ms if changed else usual_ms + _SPREAD_WEIGHT * (step_ms - usual_ms)
        self._gap_ms = (
            gap_ms if self.has_stopped or gap_ms > self._gap_ms else 0.9 * self._gap_ms + 0.1 * gap_ms
        )
        self._logged_ms, self._step, self._heard_ms = logged_ms, step, now_ms
        self.has_stopped = False
        return changed
