"""`RunWatch`: looks at the newest values of a run that goes on, and says when it is to be judged.

It keeps a few numbers for each series, and decides nothing: `judge` does, by all that is recorded.

Example:
    >>> watch = RunWatch(started_ms)
    >>> watch.look(now_ms, [NewestValues(lane, keys, times_ms, values)])    # each half minute or so
    >>> if watch.pace.due(now_ms) is not None:
    ...     began = time.thread_time()
    ...     findings = judge(observed)
    ...     watch.pace.judged(now_ms, time.thread_time() - began)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from runvitals.findings.observation import reads, reads_logged
from runvitals.findings.pace import JudgementPace
from runvitals.findings.screen import SILENT_MS, EndScreen, LevelScreen, StepScreen
from runvitals.findings.windows import Bools, Floats, Integers
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.names import STEP

_SHARE, _SHARE_OF_OTHERS = 0.10, 0.5
"""Traffic, and what a training logs, vary more than levels do."""
_FLOORS = {"%": 8.0, "bytes": 2.0**28, "MiB": 16.0, "MB": 256.0, "s": 0.1, "°C": 8.0, "MHz": 100.0, "W": 20.0}
"""Smaller changes of a level never count, by unit; those of counters are meant per second."""
_FLOOR_OF_LOGGED = 1e-6
_FILLING = ".usagePercent"
"""Of a disk: a forecast needs each percent."""
_ERRORS = ("Errors", "recoveryAction", "pcieReplays", "Suspect")


class WatchedKeys:
    """The keys of a lane, and what counts as a change of each. One object serves all lanes with these keys.

    Args:
        keys: of all values; those that no rule reads are not looked at.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.step = keys.index(STEP) if STEP in keys else None
        is_logged = self.step is not None
        reads_key = reads_logged if is_logged else reads
        self.read: Integers = np.array(
            [index for index, key in enumerate(keys) if reads_key(key)], dtype=np.int64
        )
        traits = [_logged_traits() if is_logged else _traits(keys[index]) for index in self.read.tolist()]
        self.counters: Bools = np.array([counts for counts, _, _ in traits], dtype=np.bool_)
        self.floors: Floats = np.array([floor for _, floor, _ in traits], dtype=np.float64)
        self.shares: Floats = np.array([share for _, _, share in traits], dtype=np.float64)


@lru_cache(maxsize=20_000)
def _traits(key: str) -> tuple[bool, float, float]:
    """Whether a key counts, and the smallest change that matters: as it is, and as a share of the level."""
    match = DEFINITIONS.find(key)
    if key.endswith(_ERRORS) or match is None:
        return False, 0.0 if key.endswith(_ERRORS) else 1.0, _SHARE
    if key.endswith(_FILLING):
        return False, 1.0, 0.0
    floor = _FLOORS.get(match.metric.unit, 0.5)
    if match.metric.kind != "counter":
        return False, floor, _SHARE
    return True, 16.0 * 2**20 if match.metric.unit == "bytes" else floor, _SHARE_OF_OTHERS


def _logged_traits() -> tuple[bool, float, float]:
    return False, _FLOOR_OF_LOGGED, _SHARE_OF_OTHERS


@dataclass(frozen=True, slots=True, eq=False)
class NewestValues:
    """The newest number of each series of a lane: of a host, or of a process that logs.

    Args:
        lane: tells the lanes of a run apart.
        keys: of a process that logs, `STEP` is among them.
        times_ms, values: of each key; a key of which there is no number has time 0.
    """

    lane: int | str
    keys: WatchedKeys
    times_ms: Integers
    values: Floats


class Seen(IntEnum):
    """What a look at a lane showed."""

    NOTHING = 0
    CHANGE = 1
    STOP = 2


class _WatchedLane:
    """What was seen of a lane."""

    def __init__(self, keys: WatchedKeys) -> None:
        self.keys = keys
        self._levels = LevelScreen(keys.counters, keys.floors, keys.shares, may_fall=keys.step is not None)
        self._ends = EndScreen(len(keys.read))
        self._steps = StepScreen()
        self._newest_ms = self._heard_ms = self._gap_ms = 0
        self._is_silent = self._is_finite = True

    def look(self, now_ms: int, newest: NewestValues) -> Seen:
        """Return what changed."""
        keys, step_index = self.keys, self.keys.step
        seen = Seen.NOTHING
        if step_index is not None and self._steps.look(
            now_ms, int(newest.times_ms[step_index]), float(newest.values[step_index])
        ):
            seen = Seen.STOP if self._steps.has_stopped else Seen.CHANGE
        times_ms = newest.times_ms[keys.read]
        newest_ms = int(times_ms.max(initial=0))
        if newest_ms <= self._newest_ms:
            return max(seen, self._look_at_silence(now_ms))
        if self._newest_ms:
            seen = max(seen, Seen.CHANGE if self._is_silent else Seen.NOTHING)
            self._gap_ms = max(now_ms - self._heard_ms, self._gap_ms * 9 // 10)
        self._newest_ms, self._heard_ms, self._is_silent = newest_ms, now_ms, False
        values = np.where(newest_ms - times_ms > SILENT_MS, np.nan, newest.values[keys.read])
        if self._levels.look(newest_ms, values):
            seen = max(seen, Seen.CHANGE)
        was_finite, self._is_finite = self._is_finite, not (step_index is not None and np.isinf(values).any())
        if self._ends.look(times_ms) or was_finite > self._is_finite:
            return Seen.STOP
        return seen

    def _look_at_silence(self, now_ms: int) -> Seen:
        """Return whether nothing arrives any more."""
        if self._is_silent or now_ms - self._heard_ms <= max(2 * self._gap_ms, SILENT_MS):
            return Seen.NOTHING
        self._is_silent = True
        return Seen.STOP


class RunWatch:
    """Watches a run that goes on.

    Args:
        started_ms: of the run, ms UTC.

    Attributes:
        pace: says when a judgement is due.
    """

    def __init__(self, started_ms: int) -> None:
        self.pace = JudgementPace(started_ms)
        self._lanes: dict[int | str, _WatchedLane] = {}

    def look(self, now_ms: int, lanes: Iterable[NewestValues]) -> None:
        """Take the newest values of all lanes. After the first look, new lanes and keys are a change."""
        is_first = not self._lanes
        for newest in lanes:
            lane = self._lanes.get(newest.lane)
            is_new = lane is None or lane.keys is not newest.keys
            if lane is None or is_new:
                lane = self._lanes[newest.lane] = _WatchedLane(newest.keys)
            seen = lane.look(now_ms, newest)
            if seen or (is_new and not is_first):
                self.pace.change(now_ms, has_stopped=seen is Seen.STOP)
