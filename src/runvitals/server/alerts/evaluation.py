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

from runvitals.base.buckets import Floats, Integers
from runvitals.server.alerts.rules import AlertRule, Feature, RuleCondition
from runvitals.server.alerts.windows import (
    BUCKETS,
    CHANGE,
    CHANGE_BUCKETS,
    DEVIATIONS,
    FRACTION,
    LAST,
    MAX,
    MAX_CHANGE_BUCKETS,
    MEAN,
    MIN,
    RELATIVE,
    SeriesWindows,
)

OK, PENDING, FIRING = 0, 1, 2
_STATISTICS: Final = {"mean": MEAN, "min": MIN, "max": MAX}
_MIN_POINTS: Final = 16
_EQUALITIES: Final = {"=": 1.0, "!=": -1.0}
_NEVER: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class EvaluatedSeries:
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
    """A number that is computed from a series, and the rules that compare it.

    Args:
        shares: slots with the same one and the same feature have one window; "": the slot has its own.
    """

    series: EvaluatedSeries
    feature: Feature
    rules: tuple[AlertRule, ...]
    shares: str = ""


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The state of an instance, which is kept over a restart.

    Attributes:
        since_ms: since when the condition holds.
        fired_ms: when the series last fired; None: never.
    """

    state: int
    since_ms: int
    fired_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule begins to fire for a series, or is over.

    Args:
        value: what the rule compares; of a change over points, the mean of the newer ones.
        text: of a finding, the sentences that tell it.
    """

    rule: AlertRule
    series: EvaluatedSeries
    firing: bool
    time_ms: int
    value: float
    text: str = ""


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
        self._counts_points = np.array([slot.feature.points > 0 for slot in slots], bool)
        self._any_points = bool(self._counts_points.any())
        self._window_of = np.full(len(slots), -1)
        self._buckets_of = np.array([_buckets(slot.feature) for slot in slots], np.int64)
        sizes = np.unique(self._buckets_of).tolist()
        self._windows = {buckets: self._make_windows(buckets) for buckets in sizes if buckets}
        self._make_instances()

    @property
    def last_ms(self) -> Integers:
        """The time of the newest value of each slot."""
        return self._last_ms

    def add(self, slots: Integers, times: Integers, values: Floats) -> list[Transition]:
        """Add values, at most one to each slot, and return the transitions.

        Values that are NaN, or not newer than the slot's last, are left out. Slots that count points take
        each value that is not NaN, whenever it was.
        """
        if self._any_points:
            at = np.nonzero(self._counts_points[slots])[0]
            times = times.copy()
            times[at] = self._next_points(slots[at])
        new = (times > self._last_ms[slots]) & ~np.isnan(values)
        if not new.all():
            slots, times, values = slots[new], times[new], values[new]
        if not len(slots):
            return []
        self._last_ms[slots] = times
        results = self._results(slots, times, values)
        is_used = ~np.isnan(results)
        if self._any_points:
            is_used |= self._counts_points[slots]  # a condition about points that has no result is not met
        if not is_used.all():
            slots, results = slots[is_used], results[is_used]
        if not len(slots):
            return []
        self.values[slots] = results
        return self._compare(slots)

    def fill(self, slot: int, times: Integers, values: Floats) -> None:
        """Fill the window of a slot with earlier values, without comparing anything."""
        at = np.array([slot])
        for time_ms, value in zip(times.tolist(), values.tolist(), strict=True):
            if time_ms > self._last_ms[slot] and value == value:
                self._last_ms[slot] = time_ms
                result = self._results(at, np.array([time_ms]), np.array([value]))
                if not np.isnan(result[0]):
                    self.values[slot] = result[0]

    def take_over(self, before: Evaluation) -> None:
        """Continue with the values and windows of slots that were there before."""
        index_of = {(slot.series, slot.feature): index for index, slot in enumerate(before.slots)}
        pairs = [
            (index, index_of[slot.series, slot.feature])
            for index, slot in enumerate(self.slots)
            if (slot.series, slot.feature) in index_of
        ]
        if not pairs:
            return
        new, old = np.array(pairs).T
        self._last_ms[new] = before._last_ms[old]
        self.values[new] = before.values[old]
        for buckets, windows in self._windows.items():
            its = before._windows.get(buckets)
            chosen = self._buckets_of[new] == buckets
            if its is not None and chosen.any():
                windows.take_over(self._window_of[new[chosen]], its, before._window_of[old[chosen]])

    def state(self) -> dict[tuple[int, EvaluatedSeries], InstanceState]:
        """Return the instances that are pending or firing, or have fired, by rule id and series."""
        states = {}
        for index in np.nonzero((self._state != OK) | (self._fired_ms != _NEVER))[0].tolist():
            states[self._key(index)] = self._instance(index)
        return states

    def restore(self, states: dict[tuple[int, EvaluatedSeries], InstanceState]) -> None:
        """Continue with the states of instances of before."""
        slots_of: dict[EvaluatedSeries, list[int]] = {}
        for slot, about in enumerate(self.slots) if states else ():
            slots_of.setdefault(about.series, []).append(slot)
        for (rule_id, series), before in states.items():
            for slot in slots_of.get(series, ()):
                for position, rule in enumerate(self.slots[slot].rules):
                    if rule.id == rule_id:
                        self._set(int(self._first[slot]) + position, before)

    def _set(self, index: int, before: InstanceState) -> None:
        self._state[index] = before.state
        self._since_ms[index] = before.since_ms
        self._fired_ms[index] = _NEVER if before.fired_ms is None else before.fired_ms
        self._limits[index] = self._fire[index] if before.state == OK else self._clear[index]

    def _make_windows(self, buckets: int) -> SeriesWindows:
        """Return the windows of all slots that have so many buckets."""
        features: list[Feature] = []
        shared: dict[tuple[str, Feature], int] = {}
        for index in np.nonzero(self._buckets_of == buckets)[0].tolist():
            slot = self.slots[index]
            position = len(features)
            if slot.shares:
                position = shared.setdefault((slot.shares, slot.feature), position)
            if position == len(features):
                features.append(slot.feature)
            self._window_of[index] = position
        windows = np.array([_window(feature, buckets) for feature in features], np.int64)
        statistics, widths, recent, used, reach = windows.T  # there is at least one
        return SeriesWindows(statistics, widths, recent, used, reach, buckets)

    def _make_instances(self) -> None:
        counts = _integers([len(slot.rules) for slot in self.slots])
        self._first: Integers = np.concatenate((_integers([0]), np.cumsum(counts)))
        self._slot_of: Integers = np.repeat(np.arange(len(self.slots)), counts)
        # Many slots have the same rules: what the arrays of these begin with is computed once.
        parameters: dict[int, Floats] = {}
        for slot in self.slots:
            if id(slot.rules) not in parameters:
                parameters[id(slot.rules)] = np.array([_numbers(rule) for rule in slot.rules]).reshape(-1, 7)
        columns = np.concatenate([np.empty((0, 7)), *(parameters[id(slot.rules)] for slot in self.slots)]).T
        self._sign, self._fire, self._clear = (column.copy() for column in columns[:3])
        self._absolute = columns[3] > 0
        self._for_ms, self._cooldown_ms = (column.astype(np.int64) for column in columns[4:6])
        self._equality = columns[6].copy()
        size = len(self._slot_of)
        self._limits = self._fire.copy()
        self._state = np.zeros(size, np.int8)
        self._since_ms = np.full(size, _NEVER)
        self._fired_ms = np.full(size, _NEVER)
        self._any_absolute = bool(self._absolute.any())
        self._any_equality = bool(self._equality.any())

    def _next_points(self, slots: Integers) -> Integers:
        """Return the times of the next values of slots, where these count their values."""
        times: Integers = np.maximum(self._last_ms[slots] + 1, 0)
        buckets_of, window_of = self._buckets_of[slots], self._window_of[slots]
        for buckets, windows in self._windows.items():
            chosen = buckets_of == buckets
            times[chosen] = windows.next_points(window_of[chosen])
        return times

    def _results(self, slots: Integers, times: Integers, values: Floats) -> Floats:
        buckets_of, window_of = self._buckets_of[slots], self._window_of[slots]
        if not buckets_of.any():
            return values
        results: Floats = values.copy()
        for buckets, windows in self._windows.items():
            chosen = np.nonzero(buckets_of == buckets)[0]
            if len(chosen):
                results[chosen] = windows.add(window_of[chosen], times[chosen], values[chosen])
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
        if self._any_equality:
            equality = self._equality[instances]
            is_equal = values == self._fire[instances]
            beyond = np.where(equality == 0, beyond, (is_equal == (equality > 0)) & ~np.isnan(values))
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
        instances: Integers = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
        return instances

    def _begin(self, instances: Integers) -> Integers:
        self._state[instances] = PENDING
        self._since_ms[instances] = self._last_ms[self._slot_of[instances]]
        self._limits[instances] = self._clear[instances]
        return instances

    def _fire_due(self, instances: Integers) -> list[Transition]:
        times = self._last_ms[self._slot_of[instances]]
        is_long_enough = times - self._since_ms[instances] >= self._for_ms[instances]
        cool = times - self._fired_ms[instances] >= self._cooldown_ms[instances]
        due = instances[is_long_enough & cool]
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
        feature = self.slots[slot].feature
        if feature.points_before:
            value = self._windows[_buckets(feature)].recent_mean(int(self._window_of[slot]))
        return Transition(self._rule(index), self.slots[slot].series, firing, time_ms, value)

    def _rule(self, index: int) -> AlertRule:
        slot = int(self._slot_of[index])
        return self.slots[slot].rules[index - int(self._first[slot])]

    def _key(self, index: int) -> tuple[int, EvaluatedSeries]:
        return self._rule(index).id, self.slots[int(self._slot_of[index])].series

    def _instance(self, index: int) -> InstanceState:
        fired_ms = int(self._fired_ms[index])
        since_ms, state = int(self._since_ms[index]), int(self._state[index])
        return InstanceState(state, since_ms, None if fired_ms == _NEVER else fired_ms)


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _numbers(rule: AlertRule) -> tuple[float, ...]:
    """Return what the arrays of an instance hold of its rule."""
    equality = _EQUALITIES.get(rule.condition.operator, 0.0)
    return (*_limits(rule.condition), rule.condition.absolute, rule.for_ms, rule.cooldown_ms, equality)


def _buckets(feature: Feature) -> int:
    """Return how many buckets a feature's windows have; 0 if it needs none.

    Windows over points have a power of two, so that few sizes are needed.
    """
    if feature.points:
        used = feature.points + feature.points_before
        is_last = feature.statistic == "last"
        return 0 if is_last else max(_MIN_POINTS, 1 << (used - 1).bit_length())
    if not feature.window_ms:
        return 0
    return MAX_CHANGE_BUCKETS if feature.baseline_ms else BUCKETS


def _window(feature: Feature, buckets: int) -> tuple[int, int, int, int, int]:
    """Return what `SeriesWindows` takes of a feature: statistic, width, recent, used, reach."""
    if feature.points:
        used = feature.points + feature.points_before
        return _statistic(feature), 1, feature.points, used, used - 1
    recent = CHANGE_BUCKETS if feature.baseline_ms else BUCKETS
    width = max(1, feature.window_ms // recent)
    used = min(recent + -(-feature.baseline_ms // width), buckets)
    reach = recent + (used - recent) // 2 if feature.baseline_ms else recent // 2
    return _statistic(feature), width, recent, used, reach


def _statistic(feature: Feature) -> int:
    if feature.statistic == "deviations":
        return DEVIATIONS
    if feature.points_before:
        return FRACTION if feature.relative else CHANGE
    if feature.baseline_ms:
        return RELATIVE if feature.relative else CHANGE
    return _STATISTICS.get(feature.statistic, LAST)


def _limits(condition: RuleCondition) -> tuple[float, float, float]:
    """Sign, and limits for `value * sign > limit`: to begin, and to stay."""
    if condition.operator in _EQUALITIES:
        return 1.0, condition.fire, condition.clear
    sign = 1.0 if condition.operator.startswith(">") else -1.0
    fire, clear = condition.fire * sign, condition.clear * sign
    if condition.operator.endswith("="):
        return sign, float(np.nextafter(fire, -np.inf)), float(np.nextafter(clear, -np.inf))
    return sign, fire, clear
