"""The findings about a run of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.observed_run import ObservedRun, host_of
from runvitals.findings.training import LoggedColumn, Mark, training_of
from runvitals.findings.windows import reduce_samples, windows_of

if TYPE_CHECKING:
    from runvitals.model.run import Run
    from runvitals.readers.journals.run_handle import LoggedRow
    from runvitals.readers.journals.series import Series

DEFAULT_INTERVAL_S = 15.0


def findings_of(
    facts: Run,
    series: Sequence[Series],
    rows: Sequence[LoggedRow],
    now_ms: int,
    price_per_device_hour: float | None = None,
) -> Findings:
    """Judge a run.

    Args:
        series: of all hosts. Rates may be among them; they are not looked at.
        rows: of `log()`, ordered by time.
        price_per_device_hour: None without prices.
    """
    return judge(observe(facts, series, rows, now_ms, price_per_device_hour))


def observe(
    facts: Run,
    series: Sequence[Series],
    rows: Sequence[LoggedRow],
    now_ms: int,
    price_per_device_hour: float | None = None,
) -> ObservedRun:
    """Return what rules see of a run."""
    by_host: dict[str, dict[str, tuple[Any, Any]]] = {}
    for each in series:
        times, values = np.asarray(each.t, dtype=np.int64), np.asarray(each.values, dtype=np.float64)
        if len(times):
            by_host.setdefault(each.host, {}).setdefault(each.key, (times, values))
    intervals = {host.name: host.interval_s for host in facts.hosts if host.interval_s}
    for name, columns in by_host.items():
        intervals.setdefault(name, _interval_s(columns))
    times_ms = [times for columns in by_host.values() for times, _ in columns.values()]
    start_ms = min([facts.started_ms, *(int(times[0]) for times in times_ms)])
    end_ms = facts.ended_ms or max([facts.started_ms, *(int(times[-1]) for times in times_ms)])
    windows = windows_of(start_ms, max(end_ms, start_ms + 1), max(intervals.values(), default=DEFAULT_INTERVAL_S))
    hosts = [
        host_of(
            reduce_samples(name, columns, windows, intervals[name]),
            facts.machines.get(name, {}),
            _ranks(facts, name),
        )
        for name, columns in by_host.items()
    ]
    marks = [Mark(event.time_ms, event.text) for event in facts.events if event.name in ("mark", "marker")]
    return ObservedRun(
        windows, hosts, training_of(windows, _logged(rows), marks), facts.state, start_ms, facts.ended_ms,
        end_ms if facts.ended_ms else min(now_ms, end_ms + windows.width_ms),
        facts.out_of_memory, facts.signal, price_per_device_hour=price_per_device_hour,
    )  # fmt: skip


def _interval_s(columns: Mapping[str, tuple[Any, Any]]) -> float:
    longest = max((times for times, _ in columns.values()), key=len)
    return float(np.median(np.diff(longest))) / 1000 if len(longest) > 1 else DEFAULT_INTERVAL_S


def _ranks(facts: Run, host: str) -> dict[int, int]:
    return {
        rank.local_rank: rank.rank
        for rank in facts.ranks
        if rank.host == host and rank.rank is not None and rank.local_rank is not None
    }


def _logged(rows: Sequence[LoggedRow]) -> dict[str, LoggedColumn]:
    """The logged numbers by name."""
    collected: dict[str, tuple[list[int], list[int], list[float]]] = {}
    for row in rows:
        for name, value in row.data.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                times, steps, values = collected.setdefault(name, ([], [], []))
                times.append(row.time_ms)
                steps.append(-1 if row.step is None else row.step)
                values.append(float(value))
    return {
        name: LoggedColumn(np.array(times, dtype=np.int64), np.array(steps, dtype=np.int64), np.array(values))
        for name, (times, steps, values) in collected.items()
    }
