"""The findings about a run of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runvitals.findings.observation import HostSamples, marks_of, observe, ranks_on
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.training import LoggedColumn

if TYPE_CHECKING:
    from runvitals.model.run import Run
    from runvitals.readers.journals.run_handle import LoggedRow
    from runvitals.readers.journals.series import Series


def observe_run(
    facts: Run,
    series: Sequence[Series],
    rows: Sequence[LoggedRow],
    now_ms: int,
    price_per_device_hour: float | None = None,
) -> ObservedRun:
    """Return what rules see of a run.

    Args:
        series: of all hosts. Derived rates may be among them.
        rows: of `log()`, ordered by time.
        price_per_device_hour: None without prices.
    """
    by_host: dict[str, dict[str, tuple[Any, Any]]] = {}
    for each in series:
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
        logged_columns(rows),
        marks_of(facts.events),
        state=facts.state,
        started_ms=facts.started_ms,
        ended_ms=facts.ended_ms,
        now_ms=now_ms,
        out_of_memory=facts.out_of_memory,
        price_per_device_hour=price_per_device_hour,
    )


def logged_columns(rows: Sequence[LoggedRow]) -> dict[str, LoggedColumn]:
    """Return the numbers of rows as columns, by name."""
    collected: dict[str, tuple[list[int], list[int], list[float]]] = {}
    for row in rows:
        for name, value in row.data.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                times, steps, values = collected.setdefault(name, ([], [], []))
                times.append(row.time_ms)
                steps.append(-1 if row.step is None else row.step)
                values.append(float(value))
    return {
        name: LoggedColumn(
            np.array(times, dtype=np.int64),
            np.array(steps, dtype=np.int64),
            np.array(values, dtype=np.float64),
        )
        for name, (times, steps, values) in collected.items()
    }
