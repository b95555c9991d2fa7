"""The evaluation of rules equals a slow one that looks at all values each time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.server.alerts.evaluation import EvaluatedSeries, Evaluation, Slot
from runvitals.server.alerts.rules import AlertRule, rule
from runvitals.server.alerts.windows import BUCKETS, CHANGE_BUCKETS

T0 = 1_800_000_000_000
SERIES = [EvaluatedSeries(1, lane, f"node{lane}", "gpu.0.gpu") for lane in (1, 2, 3)]
Row = tuple[int, int, float]


def made(rule_id: int = 1, **fields: Any) -> AlertRule:
    condition = {"kind": "threshold", "metric": "gpu.*.gpu", **fields.pop("condition", {})}
    return rule({"name": f"rule {rule_id}", "condition": condition, **fields}, rule_id)


def slots(rules: Sequence[AlertRule]) -> list[Slot]:
    by_feature: dict[Any, list[AlertRule]] = {}
    for watched in rules:
        by_feature.setdefault(watched.condition.feature, []).append(watched)
    return [Slot(series, feature, tuple(same)) for series in SERIES for feature, same in by_feature.items()]


class Slow:
    """The same without arrays, and with all values of a series."""

    def __init__(self, rules: Sequence[AlertRule]) -> None:
        self._rules = rules
        self._rows: dict[int, list[tuple[int, float]]] = {}
        self._states: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, lane: int, time_ms: int, value: float) -> list[tuple[int, int, bool, int]]:
        rows = self._rows.setdefault(lane, [])
        if math.isnan(value) or (rows and time_ms <= rows[-1][0]):
            return []
        rows.append((time_ms, value))
        begun = []
        for watched in self._rules:
            number = self._number(watched, rows)
            if number is None:
                continue
            state = self._states.setdefault((watched.id, lane), {"state": "ok", "fired": None})
            begun += [
                (watched.id, lane, firing, time_ms) for firing in self._step(watched, state, number, time_ms)
            ]
        return begun

    def _step(self, watched: AlertRule, state: dict[str, Any], number: float, time_ms: int) -> list[bool]:
        condition = watched.condition
        number = abs(number) if condition.absolute else number
        limit = condition.fire if state["state"] == "ok" else condition.clear
        beyond = {
            ">": number > limit,
            ">=": number >= limit,
            "<": number < limit,
            "<=": number <= limit,
        }[condition.operator]
        if not beyond:
            was_firing = state["state"] == "firing"
            state["state"] = "ok"
            return [False] if was_firing else []
        if state["state"] == "ok":
            state |= {"state": "pending", "since": time_ms}
        has_lasted = state["state"] == "pending" and time_ms - state["since"] >= watched.for_ms
        if has_lasted and (state["fired"] is None or time_ms - state["fired"] >= watched.cooldown_ms):
            state |= {"state": "firing", "fired": time_ms}
            return [True]
        return []

    def _number(self, watched: AlertRule, rows: list[tuple[int, float]]) -> float | None:
        feature = watched.condition.feature
        assert feature is not None
        if not feature.window_ms:
            return rows[-1][1]
        divided = CHANGE_BUCKETS if feature.baseline_ms else BUCKETS
        width = max(1, feature.window_ms // divided)
        newest = rows[-1][0] // width
        behind = [(newest - time_ms // width, value) for time_ms, value in rows]
        recent = [(back, value) for back, value in behind if back < divided]
        if not feature.baseline_ms:
            if not any(back >= divided // 2 for back, _ in recent):
                return None
            values = [value for _, value in recent]
            return {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}[
                feature.statistic
            ]
        used = divided + -(-feature.baseline_ms // width)
        half = divided + (used - divided) // 2
        before = [(back, value) for back, value in behind if divided <= back < used]
        if not any(back >= half for back, _ in before):
            return None
        mean = sum(value for _, value in recent) / len(recent)
        base = sum(value for _, value in before) / len(before)
        if feature.relative:
            return None if base == 0 else 100 * (mean - base) / abs(base)
        return mean - base


def fast(rules: Sequence[AlertRule], rows: Sequence[Row], restarts: Sequence[int]) -> list[Any]:
    evaluation = Evaluation(slots(rules))
    begun = []
    for number, (lane, time_ms, value) in enumerate(rows):
        if number in restarts:
            again = Evaluation(slots(rules)[::-1])
            again.take_over(evaluation)
            again.restore(evaluation.state())
            evaluation = again
        at = [index for index, slot in enumerate(evaluation.slots) if slot.series.lane_id == lane]
        times, values = np.full(len(at), time_ms), np.full(len(at), value)
        begun += evaluation.add(np.array(at), times, values)
    return [(event.rule.id, event.series.lane_id, event.firing, event.time_ms) for event in begun]


def slow(rules: Sequence[AlertRule], rows: Sequence[Row]) -> list[Any]:
    reference = Slow(rules)
    return [transition for row in rows for transition in reference.add(*row)]


CONDITIONS = st.one_of(
    st.builds(
        lambda operator, value, gap, statistic, window: {
            "operator": operator,
            "value": value,
            "clear": value - gap if operator.startswith(">") else value + gap,
            "statistic": statistic,
            "window": window,
        },
        st.sampled_from([">", ">=", "<", "<="]),
        st.integers(0, 8),
        st.integers(0, 3),
        st.sampled_from(["last", "mean", "min", "max"]),
        st.sampled_from([12, 24, 60]),
    ),
    st.builds(
        lambda by, clear, direction, relative, longer: {
            "kind": "change",
            "window": 8,
            "baseline": 8 * longer,
            "by": by,
            "clear": min(clear, by),
            "direction": direction,
            "relative": relative,
        },
        st.integers(1, 60),
        st.integers(0, 60),
        st.sampled_from(["up", "down", "either"]),
        st.booleans(),
        st.integers(1, 4),
    ),
)
RULES = st.lists(st.tuples(CONDITIONS, st.integers(0, 6), st.integers(0, 20)), min_size=1, max_size=5).map(
    lambda chosen: [
        made(number + 1, condition=condition, **{"for": wait, "cooldown": cool})
        for number, (condition, wait, cool) in enumerate(chosen)
    ]
)
# Mostly a step of a second; sometimes a gap, an older time or the same one.
STEPS = st.one_of(
    st.just(1000), st.just(1000), st.integers(-3000, 3000), st.sampled_from([0, 30_000, 400_000])
)
ROWS = st.lists(
    st.tuples(st.integers(1, 3), STEPS, st.one_of(st.integers(0, 8), st.just(math.nan))),
    max_size=80,
)


@settings(max_examples=150)
@given(rules=RULES, steps=ROWS, restarts=st.lists(st.integers(0, 80), max_size=3))
def test_it_equals_a_slow_evaluation(rules: list[AlertRule], steps: list[Any], restarts: list[int]) -> None:
    rows, now_ms = [], T0
    for lane, step, value in steps:
        now_ms += step
        rows.append((lane, now_ms, float(value)))
    assert sorted(fast(rules, rows, restarts)) == sorted(slow(rules, rows))


def values(evaluation: Evaluation, numbers: Sequence[float], start_s: int = 0) -> list[tuple[bool, int]]:
    begun = []
    for at, number in enumerate(numbers):
        time_ms = T0 + (start_s + at) * 1000
        begun += evaluation.add(np.array([0]), np.array([time_ms]), np.array([float(number)]))
    return [(event.firing, (event.time_ms - T0) // 1000) for event in begun]


def test_it_fires_after_a_while_and_ends_beyond_the_second_threshold() -> None:
    condition = {"operator": "<", "value": 5, "clear": 10}
    evaluation = Evaluation(slots([made(condition=condition, **{"for": 3})])[:1])
    assert values(evaluation, [50, 4, 4, 50, 4, 4, 4, 4, 4, 7, 9, 10, 4]) == [(True, 7), (False, 11)]


def test_it_does_not_fire_again_within_its_cooldown() -> None:
    evaluation = Evaluation(slots([made(condition={"value": 1}, cooldown=10)])[:1])
    numbers = [0, 2, 0, 2, 0, 2, 2, 2, 2, 2, 2, 2, 2]
    assert values(evaluation, numbers) == [(True, 1), (False, 2), (True, 11)]


@pytest.mark.parametrize("value", [math.inf, 7.0])
def test_infinite_values_are_compared(value: float) -> None:
    evaluation = Evaluation(slots([made(condition={"value": 5})])[:1])
    assert values(evaluation, [1, value]) == [(True, 1)]


def test_nothing_is_compared_before_half_of_the_window() -> None:
    condition = {"operator": "<", "value": 5, "statistic": "mean", "window": 60}
    evaluation = Evaluation(slots([made(condition=condition)])[:1])
    assert values(evaluation, [0] * 29) == []
    assert len(values(evaluation, [0] * 10, start_s=29)) == 1
