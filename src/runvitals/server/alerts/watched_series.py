"""Which series rules are about, and where the columns of a batch go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Final

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model.batch_format import GAP_BITS
from runvitals.model.names import STEP
from runvitals.model.state import MONITOR
from runvitals.readers.journals.rates import rate_of
from runvitals.server.alerts.evaluation import EvaluatedSeries, Evaluation, Slot, Transition
from runvitals.server.alerts.rules import AlertRule, Feature
from runvitals.store.samples.interface import SampleBatch

_COMPARED: Final = ("threshold", "change", "not_finite", "points")


@dataclass(slots=True)
class WatchedHost:
    """A host of a run, and the rules that are about it.

    Args:
        metrics: the ids of its metrics, with their keys.
        heard_ms: when something of it was stored last.
        rank: of the training process that logs in this lane; None: a monitor, or unknown.
        has_ended: nothing more is expected of it.
    """

    lane_id: int
    run_id: int
    host: str
    role: str
    rules: tuple[AlertRule, ...] = ()
    metrics: dict[int, str] = field(default_factory=dict)
    heard_ms: int = 0
    rank: int | None = None
    project_id: int = 0
    has_ended: bool = False

    @property
    def logs(self) -> bool:
        """Whether rows of `log()` have arrived, not samples alone."""
        return STEP in self.metrics.values()


@lru_cache(maxsize=4096)
def pattern(metric: str) -> re.Pattern[str]:
    """Return what the keys of a metric match: `*` stands for any text."""
    return re.compile(translate(metric.replace("[", "[[]").replace("?", "[?]")))


@dataclass(frozen=True, slots=True)
class Round:
    """At most one value for each slot."""

    slots: Integers
    times: Integers
    values: Floats


class WatchedSeries:
    """The slots of an evaluation, by host and metric.

    Attributes:
        evaluation: of these slots.
        slots_of: the indexes of the slots by feature, for rules that compare series.
    """

    def __init__(self, hosts: Iterable[WatchedHost], extra: Iterable[Feature] = ()) -> None:
        self._extra = tuple(extra)
        # By the identity of a tuple of rules, which many hosts share and keep: its hash is slow.
        self._matches: dict[tuple[int, str], list[tuple[Feature, tuple[AlertRule, ...]]]] = {}
        self._by_feature: dict[int, dict[Feature, list[AlertRule]]] = {}
        self._of_metric: dict[tuple[int, int], list[int]] = {}
        self._counted_run: dict[int, int] = {}
        self._project_of: dict[int, int] = {}
        self._columns: dict[tuple[int, tuple[int, ...]], tuple[Integers, Integers]] = {}
        self.slots_of: dict[Feature, list[int]] = {}
        slots: list[Slot] = []
        factors: list[float] = []
        measured: list[bool] = []
        of_points: dict[tuple[EvaluatedSeries, Feature], int] = {}
        for host in hosts:
            logs = host.logs
            for metric_id, stored_key in host.metrics.items():
                for key, factor in _keys(stored_key):
                    series = EvaluatedSeries(host.run_id, host.lane_id, host.host, key)
                    for feature, rules in self._features(host.rules, key):
                        shares, index = "", len(slots)
                        if feature.points:
                            if not logs or key != stored_key:
                                continue
                            series = EvaluatedSeries(host.run_id, 0, "", key)
                            shares = self._points_of(host, feature)
                            index = of_points.setdefault((series, feature), index)
                        self._of_metric.setdefault((host.lane_id, metric_id), []).append(index)
                        if index < len(slots):
                            continue
                        self.slots_of.setdefault(feature, []).append(index)
                        slots.append(Slot(series, feature, rules, shares))
                        factors.append(factor)
                        measured.append(host.role == MONITOR)
        self.evaluation = Evaluation(slots)
        self._factors = np.array(factors)
        self._not_finite = np.array([slot.feature.statistic == "not_finite" for slot in slots], bool)
        self._is_measured = np.array(measured, bool)
        self._counted_ms = np.zeros(len(slots), np.int64)
        self._counted = np.full(len(slots), np.nan)
        self._has_rates = bool((~np.isnan(self._factors)).any())
        self._counts_points = np.array([slot.feature.points > 0 for slot in slots], bool)

    def columns(self, lane_id: int, metrics: tuple[int, ...]) -> tuple[Integers, Integers]:
        """Return the columns of a batch that rules are about, and the slots that they go to."""
        columns = self._columns.get((lane_id, metrics))
        if columns is None:
            pairs = [
                (column, slot)
                for column, metric_id in enumerate(metrics)
                for slot in self._of_metric.get((lane_id, metric_id), ())
            ]
            array = np.array(pairs, np.int64).reshape(len(pairs), 2)
            columns = self._columns[lane_id, metrics] = (array[:, 0], array[:, 1])
        return columns

    def rounds(self, batches: Sequence[SampleBatch], not_before_ms: int) -> Iterable[Round]:
        """Yield the values of batches in rounds, so that each slot gets its values one after the other.

        Args:
            not_before_ms: older rows are left out, except of slots that count points.
        """
        by_round: list[list[tuple[Integers, int, Floats]]] = []
        used: dict[tuple[str, int], int] = {}
        for batch in batches:
            chosen, slots = self.columns(batch.run, batch.metrics)
            if not len(slots) or not len(batch.t):
                continue
            values = batch.values[:, chosen]
            order = range(len(batch.t))
            if len(batch.t) > 1 and (np.diff(batch.t) < 0).any():
                order = np.argsort(batch.t, kind="stable").tolist()
            line = self._line(batch.run)
            at = used.get(line, 0)
            for row in order:
                time_ms = int(batch.t[row])
                part = (slots, time_ms, values[row])
                if time_ms < not_before_ms:
                    points = np.nonzero(self._counts_points[slots])[0]
                    if not len(points):
                        continue
                    part = (slots[points], time_ms, values[row][points])
                if at == len(by_round):
                    by_round.append([])
                by_round[at].append(part)
                at += 1
            used[line] = at
        for parts in by_round:
            counts = [len(slots) for slots, _, _ in parts]
            times = np.repeat(np.array([time_ms for _, time_ms, _ in parts], np.int64), counts)
            yield Round(
                np.concatenate([slots for slots, _, _ in parts]),
                times,
                np.concatenate([row for _, _, row in parts]),
            )

    def add(self, samples: Round) -> list[Transition]:
        """Add the values of a round, and of counters their rates."""
        values = samples.values
        if self._has_rates:
            at = np.nonzero(~np.isnan(self._factors[samples.slots]))[0]
            slots, times, totals = samples.slots[at], samples.times[at], samples.values[at]
            growth, passed_ms = totals - self._counted[slots], times - self._counted_ms[slots]
            with np.errstate(divide="ignore", invalid="ignore"):
                rates = growth * 1000 / passed_ms * self._factors[slots]
            values = values.copy()
            values[at] = np.where((growth >= 0) & (passed_ms > 0), rates, np.nan)
            newer = passed_ms > 0
            self._counted_ms[slots[newer]], self._counted[slots[newer]] = times[newer], totals[newer]
        not_finite = self._not_finite[samples.slots]
        if not_finite.any():
            values = np.where(not_finite, self._is_not_finite(samples), values)
        return self.evaluation.add(samples.slots, samples.times, values)

    def _is_not_finite(self, samples: Round) -> Floats:
        """1 for values that are no number, else 0; NaN where there is no value. Monitors measure no NaN."""
        is_gap = samples.values.view(np.int64) == GAP_BITS
        is_gap |= np.isnan(samples.values) & self._is_measured[samples.slots]
        result: Floats = np.where(is_gap, np.nan, ~np.isfinite(samples.values))
        return result

    def _points_of(self, host: WatchedHost, feature: Feature) -> str:
        """Whose points have one window, for a slot of a host; "": those of the slot."""
        self._counted_run[host.lane_id] = host.run_id
        if feature.statistic != "deviations":
            return ""
        self._project_of[host.run_id] = host.project_id
        return f"project:{host.project_id}"

    def _line(self, lane_id: int) -> tuple[str, int]:
        """Return the queue of the rows of a host.

        Hosts whose points have common windows wait for each other.
        """
        run_id = self._counted_run.get(lane_id)
        if run_id is None:
            return "host", lane_id
        project_id = self._project_of.get(run_id)
        return ("run", run_id) if project_id is None else ("project", project_id)

    def _features(
        self, rules: tuple[AlertRule, ...], key: str
    ) -> list[tuple[Feature, tuple[AlertRule, ...]]]:
        features = self._matches.get((id(rules), key))
        if features is None:
            by_feature = self._by_feature.get(id(rules))
            if by_feature is None:
                by_feature = self._by_feature[id(rules)] = {}
                for rule in rules:
                    feature = rule.condition.feature
                    if feature is not None:
                        by_feature.setdefault(feature, []).append(rule)
                for feature in self._extra:
                    by_feature.setdefault(feature, [])
            features = self._matches[id(rules), key] = [
                (feature, tuple(comparing_rules(feature_rules)))
                for feature, feature_rules in by_feature.items()
                if (feature.metric == key if feature.points else pattern(feature.metric).match(key))
            ]
        return features


def _keys(stored_key: str) -> list[tuple[str, float]]:
    """Return the keys under which a stored series can be chosen: its own and its rate's, with the factor."""
    rate = rate_of(stored_key)
    return [(stored_key, np.nan)] if rate is None else [(stored_key, np.nan), (rate.key, rate.factor)]


def comparing_rules(rules: Iterable[AlertRule]) -> list[AlertRule]:
    """Return the rules that compare a number as it arrives."""
    return [rule for rule in rules if rule.condition.kind in _COMPARED]
