"""Computes summaries again from samples, for runs that were logging when a server crashed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from runvitals.model.names import RESERVED, STEP
from runvitals.model.summary import SummaryRules
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.log_summaries import LoggedRows, LoggedValues
from runvitals.store.samples.interface import END_OF_TIME_MS, SampleStore, StoreUnavailable

_METRICS = "metrics"
_KEPT_RANGES = 100
log = logging.getLogger("runvitals.server")


def restore_summaries(store: SampleStore, metadata_store: MetadataStore, while_running: bool = False) -> None:
    """Complete the summaries of all runs of which not all rows may be included.

    Args:
        while_running: this server has begun to log rows. The runs of other servers that have ended are
            restored then; with SQLite there are none.
    """
    pending = metadata_store.pending_summaries
    if while_running and not pending.server:
        return
    for run_id in pending.incomplete():
        # Before the run is locked: to read its sections waits for rows that are being added, perhaps to it.
        rules = _rules(run_id, metadata_store)
        if pending.server:
            pending.restore_shared(run_id, partial(_all_rows, run_id, rules, store, metadata_store))
        else:
            pending.restore(_read_logged(run_id, rules, store, metadata_store, {}))


def restore_summaries_at_start(store: SampleStore, metadata_store: MetadataStore) -> None:
    """Complete the summaries before this server logs rows.

    Raises:
        StoreUnavailable: the samples cannot be read, and there is no other server that could do it later.
    """
    try:
        restore_summaries(store, metadata_store)
    except StoreUnavailable as error:
        if not metadata_store.pending_summaries.server:
            raise
        log.warning("summaries of runs of a server that has died are completed later: %s", error)


def _rules(run_id: int, metadata_store: MetadataStore) -> SummaryRules:
    """How the metrics of a run are summarised."""
    rules = SummaryRules()
    rules.define(metadata_store.sections.read([run_id], [_METRICS])[run_id].shared.get(_METRICS, {}))
    return rules


def _all_rows(
    run_id: int, rules: SummaryRules, store: SampleStore, metadata_store: MetadataStore
) -> LoggedRows:
    """All rows of a run, with the numbers of the requests that were stored."""
    # The numbers first: what is stored between the two may count twice, and is not lost.
    stored: dict[str, list[tuple[int, int]]] = {}
    of_lanes: dict[int, Mapping[int, Sequence[tuple[int, int]]]] = {}
    for writer in metadata_store.writers.of_runs([run_id])[run_id]:
        if writer.lane_id not in of_lanes:
            of_lanes[writer.lane_id] = store.stored_batches(writer.lane_id)
        ranges = of_lanes[writer.lane_id].get(writer.id)
        if ranges:
            stored[writer.name] = list(ranges[-_KEPT_RANGES:])
    return _read_logged(run_id, rules, store, metadata_store, stored)


def _read_logged(
    run_id: int,
    rules: SummaryRules,
    store: SampleStore,
    metadata_store: MetadataStore,
    stored: Mapping[str, Sequence[tuple[int, int]]],
) -> LoggedRows:
    """The values that a run has logged."""
    lanes = sorted({writer.lane_id for writer in metadata_store.writers.of_runs([run_id])[run_id]})
    step = metadata_store.metrics.find([STEP]).get(STEP)
    logged = [newest for newest in store.latest(lanes) if step in newest.metrics.tolist()]
    last: dict[int, tuple[int, float]] = {}
    for newest in logged:
        for metric, t, value in zip(
            newest.metrics.tolist(), newest.t.tolist(), newest.values.tolist(), strict=True
        ):
            last[metric] = max(last.get(metric, (-1, 0.0)), (t, value))
    summaries: dict[str, LoggedValues] = {}
    runs = [newest.run for newest in logged]
    for metric, key in metadata_store.metrics.keys(last).items():
        if key in RESERVED:
            continue
        t, value = last[metric]
        summaries[key] = LoggedValues(1, value, value, value, value, t)
        if rules.kind(key) != "last":
            summaries[key] = _aggregate(store, metric, runs, value, t)
    last_step = None
    if step is not None and step in last:
        t, value = last[step]
        last_step = _aggregate(store, step, runs, value, t).greatest
    return LoggedRows(run_id, "", 0, 0, summaries, "all", stored, last_step)


def _aggregate(store: SampleStore, metric: int, runs: list[int], last: float, last_ms: int) -> LoggedValues:
    """All values of a metric."""
    parts = store.aggregate(metric, runs, 0, END_OF_TIME_MS - 1).series
    number = sum(int(part.n.sum()) for part in parts)
    total = float(sum(np.dot(part.n, part.mean) for part in parts))
    least = min((float(part.min.min()) for part in parts), default=last)
    greatest = max((float(part.max.max()) for part in parts), default=last)
    return LoggedValues(number, total, least, greatest, last, last_ms)
