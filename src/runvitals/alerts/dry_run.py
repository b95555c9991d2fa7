"""When a rule would have fired: evaluated on what is stored of past runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from runvitals import deadline
from runvitals.alerts.evaluation import Transition
from runvitals.alerts.rules import AlertRule
from runvitals.alerts.watched_series import WatchedHost, WatchedSeries, pattern, rounds
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.filter_text import parse
from runvitals.query.rates import rate_of
from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.alerts.rules import WatchedLane
from runvitals.store.samples.interface import SampleBatch, SampleStore

MAX_RUNS: Final = 200
"""The newest ones."""
_MOST_ROWS: Final = 200_000
"""Of one series; the newest ones."""


@dataclass(frozen=True, slots=True)
class PastFiring:
    """A time at which the rule would have fired."""

    run: str
    project: str
    key: str
    host: str
    value: float
    fired_ms: int
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a rule would have done. `runs`: how many it was evaluated on."""

    firings: list[PastFiring]
    runs: int


def dry_run(
    metadata_store: MetadataStore,
    samples: SampleStore,
    entity_id: int,
    rule: AlertRule,
    from_ms: int,
    to_ms: int,
    readable: ReadableRuns | None,
) -> DryRun:
    """Evaluate a rule on the stored samples of an entity's runs.

    Rules about silence, and those that compare the series of a run, are evaluated live only.

    Args:
        readable: only runs that the requester may read; None: all.
    """
    if rule.condition.kind in ("silence", "spread") or rule.condition.feature is None:
        return DryRun([], 0)
    entity = metadata_store.accounts.entity_names([entity_id]).get(entity_id)
    wanted = Filter(entity=entity, readable=readable, terms=parse(rule.filter) if rule.filter else ())
    run_ids = metadata_store.runs.ids(wanted, to_ms)[-10 * MAX_RUNS :]
    rows = metadata_store.runs.get(run_ids, to_ms)
    chosen = [
        row
        for row in sorted(rows.values(), key=lambda row: row.started_ms, reverse=True)
        if row.last_ms >= from_ms and (not rule.projects or row.project in rule.projects)
    ][:MAX_RUNS]
    found: list[PastFiring] = []
    for row in chosen:
        writers = metadata_store.writers.of_runs([row.id]).get(row.id, [])
        lanes = metadata_store.alerts.rules.lanes({writer.lane_id for writer in writers})
        for lane in lanes.values():
            deadline.check()
            if not rule.hosts or any(fnmatchcase(lane.host, name) for name in rule.hosts):
                found += _of_lane(metadata_store, samples, rule, lane, from_ms, to_ms)
    return DryRun(sorted(found, key=lambda one: one.fired_ms, reverse=True), len(chosen))


def _of_lane(
    metadata_store: MetadataStore,
    samples: SampleStore,
    rule: AlertRule,
    lane: WatchedLane,
    from_ms: int,
    to_ms: int,
) -> list[PastFiring]:
    assert rule.condition.feature is not None
    matches = pattern(rule.condition.feature.metric).match
    of_run: set[int] = set()
    for ids in metadata_store.metrics.of_run(lane.run_id).values():
        of_run |= ids
    keys = {
        number: key
        for number, key in metadata_store.metrics.keys(of_run).items()
        if matches(key) or ((rate := rate_of(key)) is not None and matches(rate.key))
    }
    if not keys:
        return []
    host = WatchedHost(lane.lane_id, lane.run_id, lane.host, lane.role, (rule,), dict(keys))
    series = WatchedSeries([host])
    transitions: list[Transition] = []
    for stored in samples.read([lane.lane_id], sorted(keys), from_ms, to_ms).series:
        t, values = stored.t[-_MOST_ROWS:], stored.values[-_MOST_ROWS:]
        batch = SampleBatch(lane.lane_id, 0, 0, (stored.metric,), t, np.ascontiguousarray(values)[:, None])
        for one in rounds([batch], series.columns, from_ms):
            transitions += series.add(one)
    return _firings(transitions, lane)


def _firings(transitions: list[Transition], lane: WatchedLane) -> list[PastFiring]:
    """The times at which it fired, each with its end."""
    found: list[PastFiring] = []
    open_: dict[str, PastFiring] = {}
    for one in transitions:
        key = one.series.key
        if one.firing:
            open_[key] = PastFiring(lane.uid, lane.project, key, lane.host, one.value, one.time_ms)
        elif key in open_:
            found.append(replace(open_.pop(key), ended_ms=one.time_ms))
    return [*found, *open_.values()]
