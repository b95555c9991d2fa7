"""`SpreadWatch`: how far the series of a run are from the median of the same metric in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from runvitals.server.alerts.evaluation import EvaluatedSeries, Evaluation, InstanceState, Slot, Transition
from runvitals.server.alerts.rules import AlertRule, Feature
from runvitals.server.alerts.silence import FRESH_MS
from runvitals.server.alerts.watched_series import WatchedSeries

MIN_COMPARED: Final = 3
"""Fewer series of a run have no median to be far from."""


class SpreadWatch:
    """Compares the series of each run with each other.

    Args:
        watched: whose windows are compared.
        comparing: the rules that compare a slot.
    """

    def __init__(self, watched: WatchedSeries, comparing: Callable[[Slot], tuple[AlertRule, ...]]) -> None:
        self._watched = watched
        self._distances = Evaluation(
            [
                Slot(slot.series, replace(slot.feature, window_ms=0), rules)
                for slot in watched.evaluation.slots
                if slot.feature.spread and (rules := comparing(slot))
            ]
        )
        self._index = {(slot.series, slot.feature): at for at, slot in enumerate(self._distances.slots)}

    def state(self) -> dict[tuple[int, EvaluatedSeries], InstanceState]:
        """Return the states of instances that do not rest, by rule and series."""
        return self._distances.state()

    def restore(self, states: dict[tuple[int, EvaluatedSeries], InstanceState]) -> None:
        """Go on with the states of before."""
        self._distances.restore(states)

    def compare(self, now_ms: int) -> list[Transition]:
        """Return which rules begin to fire, and for which it is over."""
        transitions: list[Transition] = []
        if not self._distances.slots:
            return transitions
        evaluation = self._watched.evaluation
        groups: dict[tuple[int, Feature], list[int]] = {}
        for feature, slots in self._watched.slots_of.items():
            if feature.spread:
                for at in slots:
                    groups.setdefault((evaluation.slots[at].series.run_id, feature), []).append(at)
        for (_, feature), members in groups.items():
            of_run = np.array(members)
            heard = evaluation.last_ms[of_run] > now_ms - FRESH_MS
            fresh = of_run[heard & ~np.isnan(evaluation.values[of_run])]
            if len(fresh) < MIN_COMPARED:
                continue
            values = evaluation.values[fresh]
            middle = float(np.median(values))
            if middle == 0:
                continue
            series = [evaluation.slots[slot].series for slot in fresh.tolist()]
            distances = 100 * (values - middle) / abs(middle)
            compared = replace(feature, window_ms=0)
            pairs = [
                (self._index[compared_series, compared], distance)
                for compared_series, distance in zip(series, distances.tolist(), strict=True)
                if (compared_series, compared) in self._index
            ]
            at_slots = np.array([slot for slot, _ in pairs], np.int64)
            times = np.full(len(pairs), now_ms)
            transitions += self._distances.add(at_slots, times, np.array([number for _, number in pairs]))
        return transitions
