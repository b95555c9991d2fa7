"""When a rule would have fired: evaluated on what is stored of past runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.filter_text import parse
from runvitals.model.state import LOST, MONITOR
from runvitals.readers.journals.rates import rate_of
from runvitals.server.alerts.evaluation import Transition
from runvitals.server.alerts.finding_watch import is_about
from runvitals.server.alerts.rules import AlertRule
from runvitals.server.alerts.silence import FRESH_MS, rank_key
from runvitals.server.alerts.spread import SpreadWatch
from runvitals.server.alerts.storage.findings import WatchedFinding
from runvitals.server.alerts.storage.rules import WatchedLane
from runvitals.server.alerts.watched_series import WatchedHost, WatchedSeries, pattern
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleBatch, SampleStore, SeriesSamples

MAX_RUNS: Final = 200
"""The newest ones."""
MAX_METRICS: Final = 20
_STEP_MS: Final = 10_000
_MAX_STEPS: Final = 5_000
_MAX_COMPARED: Final = 100
"""Series of a run that are compared with each other: they are in memory together."""
_MAX_METRICS: Final = 10
"""Of a host, to know when it was heard: a monitor sends all of them together."""
_MAX_ROWS: Final = 200_000
"""Of one series; the newest ones."""


@dataclass(frozen=True, slots=True)
class PastFiring:
    """A time at which the rule would have fired."""

    run: str
    project: str
    key: str
    host: str
    value: float | None
    fired_ms: int
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class EvaluatedMetric:
    """A metric of a run that the rule was evaluated on."""

    run: str
    project: str
    key: str
    host: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run.

    Attributes:
        runs: how many it was evaluated on.
        metrics: on which of their metrics, those of the newest runs; at most `MAX_METRICS`.
    """

    firings: list[PastFiring]
    runs: int
    metrics: list[EvaluatedMetric]


def dry_run(
    metadata_store: MetadataStore,
    samples: SampleStore,
    entity_id: int,
    rule: AlertRule,
    from_ms: int,
    to_ms: int,
    readable: ReadableRuns | None,
) -> DryRun:
    """Evaluate a rule on the stored samples of an entity's runs, or of all runs if it looks everywhere.

    Args:
        readable: only runs that the requester may read; None: all.
    """
    entity = None if rule.everywhere else metadata_store.accounts.entity_names([entity_id]).get(entity_id)
    run_filter = Filter(entity=entity, readable=readable, terms=parse(rule.filter) if rule.filter else ())
    run_ids = metadata_store.runs.ids(run_filter, to_ms)[-10 * MAX_RUNS :]
    rows = metadata_store.runs.get(run_ids, to_ms)
    chosen = [
        row
        for row in sorted(rows.values(), key=lambda row: row.started_ms, reverse=True)
        if row.last_ms >= from_ms and (not rule.projects or row.project in rule.projects)
    ][:MAX_RUNS]
    firings: list[PastFiring] = []
    metrics: list[EvaluatedMetric] = []
    if rule.condition.kind == "finding":
        of_runs = metadata_store.alerts.findings.of_runs([row.id for row in chosen])
        return DryRun(_past_findings(rule, of_runs, from_ms), len(chosen), [])
    past = _PastSamples(metadata_store, samples, from_ms, to_ms)
    evaluate = {"silence": past.silent, "spread": past.spread}.get(rule.condition.kind, past.beyond)
    for row in chosen:
        deadline.check()
        writers = metadata_store.writers.of_runs([row.id]).get(row.id, [])
        lanes = metadata_store.alerts.rules.lanes({writer.lane_id for writer in writers})
        watched_lanes = [
            lane
            for lane in lanes.values()
            if not rule.hosts or any(fnmatchcase(lane.host, name) for name in rule.hosts)
        ]
        ended_ms = None if row.state in ("running", LOST) else row.last_ms
        fired, evaluated = evaluate(rule, watched_lanes, ended_ms)
        firings += fired
        metrics += [
            EvaluatedMetric(lane.uid, lane.project, key, lane.host) for lane, key in evaluated[:MAX_METRICS]
        ]
    firings.sort(key=_by_time, reverse=True)
    return DryRun(firings, len(chosen), metrics[:MAX_METRICS])


def _by_time(firing: PastFiring) -> int:
    return firing.fired_ms


def _past_findings(rule: AlertRule, of_runs: Iterable[WatchedFinding], from_ms: int) -> list[PastFiring]:
    """Return when a rule about findings would have fired, the newest first.

    It fires once at a time for each run and id.
    """
    firings: dict[tuple[int, str], list[PastFiring]] = {}
    for finding in sorted(of_runs, key=lambda each: each.from_ms):
        fired_ms = finding.from_ms + rule.for_ms
        is_over = finding.to_ms is not None and finding.to_ms < from_ms
        if is_over or finding.lasted_ms < rule.for_ms or not is_about(rule, finding):
            continue
        before = firings.setdefault((finding.run_id, finding.id), [])
        fired = PastFiring(
            finding.uid,
            finding.project,
            finding.id,
            ", ".join(finding.hosts[:1]),
            None,
            fired_ms,
            finding.to_ms,
        )
        if before and (before[-1].ended_ms is None or fired_ms <= before[-1].ended_ms):
            last = before.pop()
            ends = (last.ended_ms, fired.ended_ms)
            ended_ms = None if None in ends else max(end for end in ends if end is not None)
            fired = replace(last, ended_ms=ended_ms)
        before.append(fired)
    return sorted((each for of_run in firings.values() for each in of_run), key=_by_time, reverse=True)


Evaluated = list[tuple[WatchedLane, str]]


class _PastSamples:
    """The stored samples of a time, and rules evaluated on those of one run."""

    def __init__(self, metadata_store: MetadataStore, samples: SampleStore, from_ms: int, to_ms: int) -> None:
        self._store = metadata_store
        self._samples = samples
        self._from_ms = from_ms
        self._to_ms = to_ms

    def beyond(
        self, rule: AlertRule, lanes: Sequence[WatchedLane], ended_ms: int | None
    ) -> tuple[list[PastFiring], Evaluated]:
        """Return when a rule would have fired that compares the values of one series, and on what."""
        firings: list[PastFiring] = []
        evaluated: Evaluated = []
        for lane in lanes:
            deadline.check()
            series = WatchedSeries([self._host(rule, lane)])
            transitions: list[Transition] = []
            for batch in self._batches(rule, lane):
                for samples in series.rounds([batch], self._from_ms):
                    transitions += series.add(samples)
            firings += _firings(transitions, [lane])
            evaluated += _series_with_values(series, [lane])
        return firings, evaluated

    def spread(
        self, rule: AlertRule, lanes: Sequence[WatchedLane], ended_ms: int | None
    ) -> tuple[list[PastFiring], Evaluated]:
        """Return the same of a rule that compares the series of a run with each other."""
        watched = WatchedSeries([self._host(rule, lane) for lane in lanes])
        comparison = SpreadWatch(watched, lambda slot: (rule,))
        each = (batch for lane in lanes for batch in self._batches(rule, lane))
        batches = list(islice(each, _MAX_COMPARED))
        times = [batch.t for batch in batches if len(batch.t)]
        if not times:
            return [], []
        first_ms, last_ms = int(min(t[0] for t in times)), int(max(t[-1] for t in times))
        step_ms = max(_STEP_MS, (last_ms - first_ms) // _MAX_STEPS)
        transitions: list[Transition] = []
        for start_ms in range(first_ms, last_ms + 1, step_ms):
            deadline.check()
            part = [_cut_batch(batch, start_ms, start_ms + step_ms) for batch in batches]
            for samples in watched.rounds(part, self._from_ms):
                watched.add(samples)
            transitions += comparison.compare(min(start_ms + step_ms, last_ms))
        return _firings(transitions, lanes), _series_with_values(watched, lanes)

    def silent(
        self, rule: AlertRule, lanes: Sequence[WatchedLane], ended_ms: int | None
    ) -> tuple[list[PastFiring], Evaluated]:
        """Return the same of a rule about silence."""
        until_ms = self._to_ms if ended_ms is None else min(ended_ms, self._to_ms)
        heard = list(self._heard(rule, lanes))
        busy = self._busy_ms(rule, lanes)
        if rule.condition.of == "rank":  # silent is who logs nothing while others do
            busy = np.unique(np.concatenate([np.empty(0, np.int64), *(times for _, _, times in heard)]))
        # A host that ended before the others is not silent; the steps are those of all.
        gone: set[int] = set()
        if rule.condition.of != "steps":
            gone = self._store.alerts.rules.ended_lanes([lane.lane_id for lane in lanes])
        firings: list[PastFiring] = []
        evaluated: Evaluated = []
        for lane, key, times in heard:
            evaluated += [(lane, key)] if rule.condition.of == "metric" else []
            for begin_ms, end_ms in gaps(times, 0 if lane.lane_id in gone else until_ms, rule.for_ms, busy):
                ended = None if end_ms >= until_ms and ended_ms is None else end_ms
                firings.append(PastFiring(lane.uid, lane.project, key, lane.host, None, begin_ms, ended))
        return firings, evaluated

    def _heard(
        self, rule: AlertRule, lanes: Sequence[WatchedLane]
    ) -> Iterable[tuple[WatchedLane, str, Integers]]:
        """Yield what can fall silent, and when it was heard."""
        of, feature = rule.condition.of, rule.condition.feature
        if of == "metric" and feature is not None:
            for lane in lanes:
                for key, t, _ in self._matching(feature.metric, lane):
                    yield lane, key, t
            return
        chosen = [lane for lane in lanes if (lane.role == MONITOR) == (of == "host")]
        by_run: list[Integers] = []
        for lane in chosen:
            heard = [t for _, t, _ in self._matching("*", lane, _MAX_METRICS)]
            times = np.unique(np.concatenate(heard)) if heard else np.empty(0, np.int64)
            by_run.append(times)
            if of == "host":
                yield lane, "", times
            elif of == "rank" and lane.rank is not None:
                yield lane, rank_key(lane.rank), times
        if of == "steps" and chosen:
            yield chosen[0], "", np.unique(np.concatenate(by_run))

    def _busy_ms(self, rule: AlertRule, lanes: Sequence[WatchedLane]) -> Integers | None:
        """Return when the run was busy; None: that does not count."""
        if not rule.condition.busy_metric:
            return None
        times = [
            t[values > rule.condition.busy_value]
            for lane in lanes
            for _, t, values in self._matching(rule.condition.busy_metric, lane)
        ]
        return np.unique(np.concatenate(times)) if times else np.empty(0, np.int64)

    def _matching(
        self, metric: str, lane: WatchedLane, most: int | None = None
    ) -> Iterable[tuple[str, Integers, Floats]]:
        keys = self._keys(metric, lane)
        for number in sorted(keys)[:most]:
            for series in self._read(lane, number):
                yield keys[number], series.t[-_MAX_ROWS:], series.values[-_MAX_ROWS:]

    def _read(self, lane: WatchedLane, metric: int) -> Sequence[SeriesSamples]:
        """One metric at a time: those of months together do not fit into memory."""
        deadline.check()
        return self._samples.read([lane.lane_id], [metric], self._from_ms, self._to_ms).series

    def _keys(self, metric: str, lane: WatchedLane) -> dict[int, str]:
        matches = pattern(metric).match
        of_run: set[int] = set()
        for ids in self._store.metrics.of_run(lane.run_id).values():
            of_run |= ids
        return {
            number: key
            for number, key in self._store.metrics.keys(of_run).items()
            if matches(key) or ((rate := rate_of(key)) is not None and matches(rate.key))
        }

    def _host(self, rule: AlertRule, lane: WatchedLane) -> WatchedHost:
        assert rule.condition.feature is not None
        keys = self._keys(rule.condition.feature.metric, lane)
        return WatchedHost(lane.lane_id, lane.run_id, lane.host, lane.role, (rule,), keys)

    def _batches(self, rule: AlertRule, lane: WatchedLane) -> Iterable[SampleBatch]:
        assert rule.condition.feature is not None
        for number in sorted(self._keys(rule.condition.feature.metric, lane)):
            for series in self._read(lane, number):
                t, values = series.t[-_MAX_ROWS:], np.ascontiguousarray(series.values[-_MAX_ROWS:])
                yield SampleBatch(lane.lane_id, 0, 0, (number,), t, values[:, None])


def gaps(
    heard_ms: Integers, until_ms: int, for_ms: int, busy_ms: Integers | None
) -> Iterable[tuple[int, int]]:
    """Yield when a silence was found, and when it was over: each time of at least `for_ms` without a value.

    Args:
        until_ms: when the run ended, or now.
        busy_ms: times at which the run was busy; a silence counts only within a minute of one. None: always.
    """
    if not len(heard_ms):
        return
    ends = np.append(heard_ms[1:], max(until_ms, int(heard_ms[-1])))
    for at in np.nonzero(ends - heard_ms >= for_ms)[0].tolist():
        silent_ms, end_ms = int(heard_ms[at]) + for_ms, int(ends[at])
        if busy_ms is not None:
            after = busy_ms[np.searchsorted(busy_ms, silent_ms - FRESH_MS, "right") :]
            if not len(after) or int(after[0]) >= end_ms:
                continue
            silent_ms = max(silent_ms, int(after[0]))
        yield silent_ms, end_ms


def _cut_batch(batch: SampleBatch, from_ms: int, to_ms: int) -> SampleBatch:
    first, last = np.searchsorted(batch.t, (from_ms, to_ms))
    return replace(batch, t=batch.t[first:last], values=batch.values[first:last])


def _series_with_values(series: WatchedSeries, lanes: Sequence[WatchedLane]) -> Evaluated:
    """Return the series that have values, by lane and key."""
    by_id = {lane.lane_id: lane for lane in lanes}
    heard = (series.evaluation.last_ms > 0).tolist()
    slots = [slot.series for slot, is_heard in zip(series.evaluation.slots, heard, strict=True) if is_heard]
    return [
        (by_id[lane_id], key)
        for lane_id, key in sorted({(series_key.lane_id, series_key.key) for series_key in slots})
    ]


def _firings(transitions: list[Transition], lanes: Sequence[WatchedLane]) -> list[PastFiring]:
    """Return the times at which it fired, each with its end."""
    by_id = {lane.lane_id: lane for lane in lanes}
    firings: list[PastFiring] = []
    open_: dict[tuple[int, str], PastFiring] = {}
    for transition in transitions:
        lane, series = by_id[transition.series.lane_id], (transition.series.lane_id, transition.series.key)
        if transition.firing:
            fired = PastFiring(
                lane.uid, lane.project, transition.series.key, lane.host, transition.value, transition.time_ms
            )
            open_[series] = fired
        elif series in open_:
            firings.append(replace(open_.pop(series), ended_ms=transition.time_ms))
    return [*firings, *open_.values()]
