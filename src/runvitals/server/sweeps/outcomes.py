"""Outcomes of the runs of a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runvitals.model.state import RUNNING
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.search_columns import DELETED, LOGGED
from runvitals.server.sweeps.configuration import SweepConfiguration, stored_configuration
from runvitals.server.sweeps.search import Trial
from runvitals.server.sweeps.storage.rows import Sweep, SweepRun
from runvitals.server.sweeps.storage.runs import RunOutcome

_LEARNED: Final = 500
"""Runs that a search looks at: the newest ones, and the best."""


def note_ended(
    store: MetadataStore, sweep: Sweep, configuration: SweepConfiguration, now_ms: int
) -> list[SweepRun]:
    """Note which runs have ended and what they achieved; returns those that have not.

    If one has reached the target of the metric, the sweep has finished.
    """
    runs = store.sweeps.runs.unended(sweep.id)
    if any(run.state == "assigned" for run in runs):
        store.sweeps.runs.adopt(sweep.id)
        runs = store.sweeps.runs.unended(sweep.id)
    numbers = [run.run_id for run in runs if run.run_id is not None]
    rows = store.runs.get(numbers, now_ms)
    ended = []
    for run in runs:
        row = None if run.run_id is None else rows.get(run.run_id)
        if row is None and run.state == "assigned":
            continue
        if row is None or row.state != RUNNING or row.deleted_ms is not None:
            ended.append(run)
    outcomes = _outcomes(store, configuration, ended)
    store.sweeps.runs.end(outcomes)
    metric = configuration.metric
    values = [outcome.value for outcome in outcomes.values() if outcome.value is not None]
    if metric is not None and any(map(metric.reaches_target, values)):
        store.sweeps.sweeps.finish(sweep.id, now_ms)
    return [run for run in runs if run.id not in outcomes]


def note_all_ended(store: MetadataStore, now_ms: int) -> None:
    """Note it of all sweeps: their agents may not ask any more."""
    for sweep in store.sweeps.sweeps.with_unended_runs():
        note_ended(store, sweep, stored_configuration(sweep.configuration), now_ms)


def values_so_far(
    store: MetadataStore, configuration: SweepConfiguration, runs: Sequence[SweepRun]
) -> dict[int, RunOutcome]:
    """Return the outcomes of runs so far, by the ids of their rows."""
    return _outcomes(store, configuration, [run for run in runs if run.run_id is not None])


def _outcomes(
    store: MetadataStore, configuration: SweepConfiguration, ended: Sequence[SweepRun]
) -> dict[int, RunOutcome]:
    numbers = [run.run_id for run in ended if run.run_id is not None]
    sections = store.sections.read(numbers, ("config", "summary", LOGGED, DELETED))
    outcomes = {}
    for run in ended:
        value, parameters = None, None
        if run.run_id in sections:
            of_run = sections[run.run_id]
            if configuration.metric is not None:
                value = _number(of_run.summary(), configuration.metric.name)
            if run.parameters is None:
                config = of_run.shared.get("config", {})
                names = {parameter.path[0] for parameter in configuration.parameters}
                parameters = {name: config[name] for name in names if name in config}
        outcomes[run.id] = RunOutcome(value, parameters)
    return outcomes


def _number(summary: Mapping[str, Any], name: str) -> float | None:
    """A finite number of a summary, also one within an object: `val.loss`."""
    value: Any = summary.get(name)
    if value is None:
        value = summary
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None


def trials(store: MetadataStore, sweep: Sweep, configuration: SweepConfiguration) -> list[Trial]:
    """The runs so far, for a search that learns from them."""
    if configuration.method != "bayes" or configuration.metric is None:
        return []
    cost = configuration.metric.cost
    return [
        Trial(run.parameters, None if run.value is None else cost(run.value), run.state == "ended")
        for run in store.sweeps.runs.newest(sweep.id, _LEARNED)
        if run.parameters is not None
    ]
