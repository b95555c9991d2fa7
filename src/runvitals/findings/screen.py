"""A cheap look at what runs measure: whether anything changed since they were last judged.

It decides nothing: after a change all rules look at the run again. A level has changed when it lies outside
its range in two looks in a row; then it is the new level, so that a change counts once and a slow drift
counts each time that it left the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from runvitals.findings.windows import MAX_VALUE, Bools, Floats, Integers
from runvitals.model.metrics import DEFINITIONS

_RELATIVE, _RELATIVE_OF_COUNTERS = 0.10, 0.5
"""Traffic varies more than levels do."""
_SPREADS = 5.0
_FLOORS = {"%": 8.0, "bytes": 2.0**28, "MiB": 16.0, "MB": 256.0, "s": 0.1, "°C": 8.0, "MHz": 100.0, "W": 20.0}
"""Smaller changes of a level never count, by unit; those of counters are meant per second."""
_ERRORS = ("Errors", "recoveryAction", "pcieReplays", "Suspect")


@lru_cache(maxsize=20_000)
def _traits(key: str) -> tuple[bool, float]:
    """Whether a key counts, and the smallest change that matters."""
    match = DEFINITIONS.find(key)
    if key.endswith(_ERRORS) or match is None:
        return False, 0.0 if key.endswith(_ERRORS) else 1.0
    floor = _FLOORS.get(match.metric.unit, 0.5)
    if match.metric.kind == "counter" and match.metric.unit == "bytes":
        floor = 16.0 * 2**20
    return match.metric.kind == "counter", floor


class LevelScreen:
    """The levels of many series, and whether one left its range.

    Args:
        counters: which of them grow; then the growth per second counts.
        floors: the smallest change of each that matters.
    """

    def __init__(self, counters: Bools, floors: Floats) -> None:
        self._counters, self._floors = counters, floors
        self._relative = np.where(counters, _RELATIVE_OF_COUNTERS, _RELATIVE)
        nothing = np.full(len(floors), np.nan)
        self._level, self._before, self._total = nothing.copy(), nothing.copy(), nothing.copy()
        self._spread = np.zeros(len(floors))
        self._outside: Bools = np.zeros(len(floors), dtype=np.bool_)
        self._time_ms = 0

    def look(self, time_ms: int, values: Floats) -> bool:
        """Take the values of a moment, or of a window, and return whether any has a new level."""
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.where(np.abs(values) < MAX_VALUE, values, np.nan)
            seconds = max((time_ms - self._time_ms) / 1000, 1e-3)
            growth = (values - self._total) / seconds
            now = np.where(self._counters, np.where(growth >= 0, growth, np.nan), values)
            self._total, self._time_ms = np.where(np.isnan(values), self._total, values), time_ms
            away = np.abs(now - self._level)
            limit = np.maximum(self._floors, self._relative * np.abs(self._level))
            outside = away > np.maximum(limit, _SPREADS * self._spread)
            new = outside & (self._outside | (self._floors == 0))
            noise = np.abs(now - self._before)
        self._spread = np.where(np.isnan(noise), self._spread, self._spread + 0.1 * (noise - self._spread))
        self._outside = outside & ~new
        self._before = now
        self._level = np.where(new | np.isnan(self._level), now, self._level)
        return bool(new.any())


class RunScreen:
    """Looks at the samples and steps of one run, and tells whether it should be judged again."""

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[Sequence[str], LevelScreen]] = {}
        self._steps = StepScreen()

    def look(self, host: str, time_ms: int, keys: Sequence[str], values: Floats) -> bool:
        """Take the mean values of a host in about the last half minute; gauges and counters alike.

        Args:
            keys: the same object as long as they are the same, which is quicker. New keys are a change.
            values: of each key; NaN is a gap.
        """
        known = self._hosts.get(host)
        if known is not None and (known[0] is keys or known[0] == keys):
            return known[1].look(time_ms, values)
        traits = [_traits(key) for key in keys]
        screen = LevelScreen(
            np.array([counts for counts, _ in traits], dtype=np.bool_),
            np.array([floor for _, floor in traits]),
        )
        self._hosts[host] = (keys, screen)
        screen.look(time_ms, values)
        return True

    def look_at_steps(self, now_ms: int, steps_ms: Integers | Sequence[int]) -> bool:
        """Take the times of the steps logged since the last look, and return whether their pace changed."""
        return self._steps.look(now_ms, steps_ms)


class StepScreen:
    """Whether steps stop, or go on."""

    def __init__(self) -> None:
        self._last_ms: int | None = None
        self._gap_ms = 0.0
        self._stopped = False

    def look(self, now_ms: int, steps_ms: Integers | Sequence[int]) -> bool:
        """Take the times of new steps, ascending."""
        changed = False
        if len(steps_ms):
            if self._last_ms is not None:
                gap_ms = (int(steps_ms[-1]) - self._last_ms) / len(steps_ms)
                usual = self._gap_ms or gap_ms
                changed = self._stopped or abs(gap_ms - usual) > max(0.5 * usual, 2000)
                self._gap_ms = gap_ms if changed else usual + 0.1 * (gap_ms - usual)
            else:
                changed = True
            self._last_ms, self._stopped = int(steps_ms[-1]), False
        elif self._last_ms is not None and not self._stopped:
            self._stopped = changed = now_ms - self._last_ms > max(5 * self._gap_ms, 60_000)
        return changed
