"""The findings about a run of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from runvitals.findings.observation import HostSamples, marks_of, observe, ranks_on, reads
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.training import LoggedColumn
from runvitals.readers.journals.rates import rate_of

if TYPE_CHECKING:
    from runvitals.model.run import Run
    from runvitals.readers.journals.history import History
    from runvitals.readers.journals.reader import RunReader


def observe_reader(
    reader: RunReader, facts: Run, now_ms: int, price_per_device_hour: float | None = None
) -> ObservedRun:
    """Return what rules see of a run.

    Args:
        facts: of the run, as they are now.
        price_per_device_hour: None without prices.
    """
    keys = {key for writer in reader.samples.writers.values() for key in writer.keys}
    rates = {rate.key for rate in map(rate_of, keys) if rate is not None}
    by_host: dict[str, dict[str, tuple[Any, Any]]] = {}
    for each in reader.samples.each(reader.groups(), lambda key: reads(key) and key not in rates):
        if len(each.t):
            columns = by_host.setdefault(each.host, {})
            columns.setdefault(
                each.key, (np.asarray(each.t, dtype=np.int64), np.asarray(each.values, dtype=np.float64))
            )
    intervals = {host.name: host.interval_s for host in facts.hosts}
    return observe(
        [
            HostSamples(
                name, columns, intervals.get(name), facts.machines.get(name, {}), ranks_on(facts, name)
            )
            for name, columns in by_host.items()
        ],
        _logged(reader.histories.values()),
        marks_of(facts.events),
        state=facts.state,
        started_ms=facts.started_ms,
        ended_ms=facts.ended_ms,
        now_ms=now_ms,
        out_of_memory=facts.out_of_memory,
        price_per_device_hour=price_per_device_hour,
    )


def _logged(histories: Iterable[History]) -> dict[str, LoggedColumn]:
    """Join what several processes logged under the same names, by time."""
    parts: dict[str, list[tuple[Any, Any, Any]]] = {}
    for history in histories:
        for name in history.keys:
            steps, times, values = map(np.array, history.column(name))
            parts.setdefault(name, []).append((steps, times, values))
    joined = {}
    for name, columns in parts.items():
        steps, times, values = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
        order = np.argsort(times, kind="stable")
        joined[name] = LoggedColumn(
            times[order].astype(np.int64), steps[order].astype(np.int64), values[order].astype(np.float64)
        )
    return joined
