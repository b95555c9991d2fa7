"""Evaluates rules on the values of series, as they arrive.

Pure: times are those of the values. For each series and each number that rules compute from it there is a
**slot**; for each rule of a slot an **instance**, which is

    ok       the condition does not hold
    pending  it holds, but not for as long as the rule says
    firing   it has held so long; until it is back beyond the rule's second threshold

All instances of all rules are arrays, and a value costs a few operations on them: a thousand rules on a
thousand hosts take milliseconds a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from runvitals.alerts.rules import Condition, Feature, Rule
from runvitals.alerts.windows import (
    BUCKETS,
    CHANGE,
    CHANGE_BUCKETS,
    LAST,
    MAX,
    MAX_CHANGE_BUCKETS,
    MEAN,
    MIN,
    RELATIVE,
    Windows,
)
from runvitals.buckets import Floats, Integers

OK, PENDING, FIRING = 0, 1, 2
_STATISTICS: Final = {"mean": MEAN, "min": MIN, "max": MAX}
_NEVER: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class Series:
    """A series that a rule can be about.

    Args:
        key: of the metric.
    """

    run_id: int
    lane_id: int
    host: str
    key: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A number that is computed from a series, and the rules that compare it."""

    series: Series
    feature: Feature
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class InstanceState:
    """What an instance keeps over a restart. `since_ms`: since when the condition holds; `fired_ms`: when the
    series last fired, None if never."""

    state: int
    since_ms: int
    fired_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule begins to fire for a series, or is over."""

    rule: Rule
    series: Series
    firing: bool
    time_ms: int
    value: float


class Evaluation:
    """The state of rules for a fixed list of slots. When the slots change, make another one.

    Example:
        >>> evaluation = Evaluation([Slot(series, feature, (rule,))])
        >>> evaluation.add(np.array([0]), np.array([now_ms]), np.array([97.0]))
        [Transition(…)]
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = list(slots)
        self._last_ms = np.full(len(slots), _NEVER)
        self.values = np.full(len(slots), np.nan)
        self._window_of = np.full(len(slots), -1)
        self._is_change = np.array([slot.feature.baseline_ms > 0 for slot in slots], bool)
        self._has_changes = bool(self._is_change.any())
        self._windows = self._make_windows(BUCKETS, changes=False)
        self._changes = self._make_windows(MAX_CHANGE_BUCKETS, changes=True)
        self._make_instances()

    @property
    def last_ms(self) -> Integers:
        """The time of the newest value of each slot."""
        return self._last_ms

    def add(self, slots: Integers, times: Integers, values: Floats) -> list[Transition]:
        """Add values, at most one to each slot. Values that are not newer than the slot's last are left out;
        so are those that are NaN."""
        new = (times > self._last_ms[slots]) & ~np.isnan(values)
        if not new.all():
            slots, times, values = slots[new], times[new], values[new]
        if not len(slots):
            return []
        self._last_ms[slots] = times
        results = self._results(slots, times, values)
        known = ~np.isnan(results)
        if not known.all():
            slots, times, results = slots[known], times[known], results[known]
        self.values[slots] = results
        return self._compare(slots)

    def state(self) -> dict[tuple[int, Series], InstanceState]:
        """The instances that are pending or firing, or have fired, by rule id and series."""
        found = {}
        for index in np.nonzero((self._state != OK) | (self._fired_ms != _NEVER))[0].tolist():
            found[self._key(index)] = self._instance(index)
        return found

    def restore(self, states: dict[tuple[int, Series], InstanceState]) -> None:
        """Continue with the states of instances of before."""
        for index in range(len(self._state)) if states else ():
            before = states.get(self._key(index))
            if before is not None:
                self._state[index] = before.state
                self._since_ms[index] = before.since_ms
                self._fired_ms[index] = _NEVER if before.fired_ms is None else before.fired_ms
                if before.state != OK:
                    self._limits[index] = self._clear[index]

    def _make_windows(self, buckets: int, changes: bool) -> Windows:
        chosen = [
            (index, slot.feature)
            for index, slot in enumerate(self.slots)
            if slot.feature.window_ms and bool(slot.feature.baseline_ms) == changes
        ]
        for position, (index, _) in enumerate(chosen):
            self._window_of[index] = position
        divided = CHANGE_BUCKETS if changes else BUCKETS
        widths = [max(1, feature.window_ms // divided) for _, feature in chosen]
        used = [
            min(divided + -(-feature.baseline_ms // width), buckets)
            for (_, feature), width in zip(chosen, widths, strict=True)
        ]
        statistics = [_statistic(feature) for _, feature in chosen]
        recent = np.full(len(chosen), divided)
        return Windows(_integers(statistics), _integers(widths), recent, _integers(used), buckets)

    def _make_instances(self) -> None:
        rules = [(index, rule) for index, slot in enumerate(self.slots) for rule in slot.rules]
        self._slot_of = _integers([index for index, _ in rules])
        self._rules = [rule for _, rule in rules]
        counts = np.bincount(self._slot_of, minlength=len(self.slots)) if rules else _integers([])
        self._first = np.concatenate(([0], np.cumsum(counts)))
        limits = [_limits(rule.condition) for rule in self._rules]
        self._sign = np.array([sign for sign, _, _ in limits])
        self._fire = np.array([fire for _, fire, _ in limits])
        self._clear = np.array([clear for _, _, clear in limits])
        self._absolute = np.array([rule.condition.absolute for rule in self._rules], bool)
        self._for_ms = _integers([rule.for_ms for rule in self._rules])
        self._cooldown_ms = _integers([rule.cooldown_ms for rule in self._rules])
        self._limits = self._fire.copy()
        self._state = np.zeros(len(rules), np.int8)
        self._since_ms = np.full(len(rules), _NEVER)
        self._fired_ms = np.full(len(rules), _NEVER)
        self._any_absolute = bool(self._absolute.any())

    def _results(self, slots: Integers, times: Integers, values: Floats) -> Floats:
        window_of = self._window_of[slots]
        if (window_of < 0).all():
            return values
        results: Floats = values.copy()
        is_change = self._is_change[slots]
        if self._has_changes:
            chosen = np.nonzero((window_of >= 0) & is_change)[0]
            if len(chosen):
                results[chosen] = self._changes.add(window_of[chosen], times[chosen], values[chosen])
        chosen = np.nonzero((window_of >= 0) & ~is_change)[0]
        if len(chosen):
            results[chosen] = self._windows.add(window_of[chosen], times[chosen], values[chosen])
        return results

    def _compare(self, slots: Integers) -> list[Transition]:
        """Compare the values of slots with the limits of their rules."""
        instances = self._instances_of(slots)
        if not len(instances):
            return []
        values = self.values[self._slot_of[instances]]
        if self._any_absolute:
            values = np.where(self._absolute[instances], np.abs(values), values)
        beyond = values * self._sign[instances] > self._limits[instances]
        state = self._state[instances]
        began = instances[beyond & (state == OK)]
        ended = instances[~beyond & (state != OK)]
        waiting = instances[beyond & (state == PENDING)]
        return [*self._end(ended), *self._fire_due(np.concatenate((waiting, self._begin(began))))]

    def _instances_of(self, slots: Integers) -> Integers:
        if len(slots) * 2 > len(self.slots):  # those of slots without a new value stay as they are
            fresh = np.zeros(len(self.slots), bool)
            fresh[slots] = True
            return np.nonzero(fresh[self._slot_of])[0]
        starts, counts = self._first[slots], self._first[slots + 1] - self._first[slots]
        ends = np.cumsum(counts)
        found: Integers = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
        return found

    def _begin(self, instances: Integers) -> Integers:
        self._state[instances] = PENDING
        self._since_ms[instances] = self._last_ms[self._slot_of[instances]]
        self._limits[instances] = self._clear[instances]
        return instances

    def _fire_due(self, instances: Integers) -> list[Transition]:
        times = self._last_ms[self._slot_of[instances]]
        held = times - self._since_ms[instances] >= self._for_ms[instances]
        cool = times - self._fired_ms[instances] >= self._cooldown_ms[instances]
        due = instances[held & cool]
        self._state[due] = FIRING
        self._fired_ms[due] = self._last_ms[self._slot_of[due]]
        return [self._transition(index, True) for index in due.tolist()]

    def _end(self, instances: Integers) -> list[Transition]:
        over = instances[self._state[instances] == FIRING]
        self._state[instances] = OK
        self._since_ms[instances] = _NEVER
        self._limits[instances] = self._fire[instances]
        return [self._transition(index, False) for index in over.tolist()]

    def _transition(self, index: int, firing: bool) -> Transition:
        slot = int(self._slot_of[index])
        time_ms, value = int(self._last_ms[slot]), float(self.values[slot])
        return Transition(self._rules[index], self.slots[slot].series, firing, time_ms, value)

    def _key(self, index: int) -> tuple[int, Series]:
        return self._rules[index].id, self.slots[int(self._slot_of[index])].series

    def _instance(self, index: int) -> InstanceState:
        fired_ms = int(self._fired_ms[index])
        since_ms, state = int(self._since_ms[index]), int(self._state[index])
        return InstanceState(state, since_ms, None if fired_ms == _NEVER else fired_ms)


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _statistic(feature: Feature) -> int:
    if feature.baseline_ms:
        return RELATIVE if feature.relative else CHANGE
    return _STATISTICS.get(feature.statistic, LAST)


def _limits(condition: Condition) -> tuple[float, float, float]:
    """Sign, and limits for `value * sign > limit`: to begin, and to stay."""
    sign = 1.0 if condition.operator.startswith(">") else -1.0
    fire, clear = condition.fire * sign, condition.clear * sign
    if condition.operator.endswith("="):
        return sign, float(np.nextafter(fire, -np.inf)), float(np.nextafter(clear, -np.inf))
    return sign, fire, clear
