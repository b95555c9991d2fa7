"""`observe`: from samples and logged rows to what rules see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from runvitals.findings.observed_run import ObservedRun, host_of
from runvitals.findings.training import LoggedColumn, Mark, is_loss, training_of
from runvitals.findings.windows import Floats, Integers, reduce_samples, windows_of
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.run import Event, Run

DEFAULT_INTERVAL_S = 15.0
FEWER = 1.5
"""Samples are so much rarer than declared: what was declared is wrong."""
MAX_TIME_MS = 2**52
"""142,000 years: later times, ms UTC, would overflow in sums."""
LATE_MS, MAX_LATE_MS = 300_000, 400 * 86_400_000
"""A run that ended so long after all that is known of it was sent later; its rows are not older than this."""


@dataclass(frozen=True, slots=True, eq=False)
class HostSamples:
    """What one host of a run measured.

    Args:
        name: of the host.
        series: times (ms UTC, ascending) and values by key, as written. Rates may be among them.
        interval_s: between samples; by default the usual distance of its samples.
        machine: facts about the host, as in journals.
        ranks: rank by local rank.
    """

    name: str
    series: Mapping[str, tuple[Integers, Floats]]
    interval_s: float | None = None
    machine: Mapping[str, Any] = field(default_factory=dict)
    ranks: Mapping[int, int] = field(default_factory=dict)

    def interval(self) -> float:
        """The seconds between samples: as declared, unless they are far fewer, as in imported runs."""
        longest = max((times for times, _ in self.series.values()), key=len, default=np.empty(0))
        seen_s = float(np.median(np.diff(longest))) / 1000 if len(longest) > 1 else DEFAULT_INTERVAL_S
        if self.interval_s and seen_s <= FEWER * self.interval_s:
            return self.interval_s
        return seen_s


def observe(
    hosts: Sequence[HostSamples],
    logged: Mapping[str, LoggedColumn] | None = None,
    marks: Sequence[Mark] = (),
    *,
    state: str,
    started_ms: int,
    ended_ms: int | None,
    now_ms: int,
    out_of_memory: bool | None = None,
    price_per_device_hour: float | None = None,
) -> ObservedRun:
    """Return what rules see of a run.

    Args:
        logged: what the training logged, by name.
        state: of the run.
        ended_ms: None while it goes on; then it is judged up to its last sample, or `now_ms`.
        price_per_device_hour: None without prices.

    Raises:
        ValueError: the price is no finite number of 0 or more.
    """
    if price_per_device_hour is not None and not 0 <= price_per_device_hour < inf:
        raise ValueError(
            f"price_per_device_hour is {price_per_device_hour}: expected a finite number of 0 or more"
        )
    present = [_of_calendar(host) for host in hosts if host.series]
    first = [int(times[0]) for host in present for times, _ in host.series.values() if len(times)]
    last = [int(times[-1]) for host in present for times, _ in host.series.values() if len(times)]
    start_ms, ended_ms = extent_of(started_ms, ended_ms, [*first, *last], logged or {})
    end_ms = ended_ms or max([started_ms, *last])
    interval_s = max((host.interval() for host in present), default=DEFAULT_INTERVAL_S)
    windows = windows_of(start_ms, max(end_ms, start_ms + 1), interval_s)
    return ObservedRun(
        windows=windows,
        hosts=[
            host_of(
                reduce_samples(host.name, host.series, windows, host.interval()), host.machine, host.ranks
            )
            for host in present
        ],
        training=training_of(windows, logged or {}, marks),
        state=state,
        started_ms=start_ms,
        ended_ms=ended_ms,
        now_ms=end_ms if ended_ms else min(now_ms, end_ms + windows.width_ms),
        out_of_memory=out_of_memory,
        price_per_device_hour=price_per_device_hour,
    )


def extent_of(
    started_ms: int, ended_ms: int | None, sampled_ms: Sequence[int], logged: Mapping[str, LoggedColumn]
) -> tuple[int, int | None]:
    """Return when a run began and ended, by what is known of it.

    A run that was recorded elsewhere and sent later (`wandb sync`, MLflow's client, imports) may have the
    times of its arrival: it is judged from its first sample to its last sample or row.

    Args:
        sampled_ms: the times of the first and the last sample of each host.
    """
    rows_ms = [
        int(time_ms)
        for column in logged.values()
        if len(column.time_ms)
        for time_ms in (column.time_ms.min(), column.time_ms.max())
        if started_ms - MAX_LATE_MS < time_ms < MAX_TIME_MS
    ]
    start_ms = min([started_ms, *(sampled_ms or rows_ms)])
    last_ms = max([*sampled_ms, *rows_ms], default=ended_ms)
    if ended_ms is not None and last_ms is not None and ended_ms - last_ms > LATE_MS:
        ended_ms = max(last_ms, start_ms + 1)
    return start_ms, ended_ms


def _of_calendar(host: HostSamples) -> HostSamples:
    """Return a host without samples that no calendar has: a broken clock is no reason to judge nothing."""
    if all(np.abs(times).max(initial=0) <= MAX_TIME_MS for times, _ in host.series.values()):
        return host
    series = {}
    for key, (times, values) in host.series.items():
        is_plausible = np.abs(times) <= MAX_TIME_MS
        series[key] = (times[is_plausible], values[is_plausible])
    return replace(host, series=series)


def ranks_on(facts: Run, host: str) -> dict[int, int]:
    """Return the ranks of a run's processes on a host, by local rank."""
    return {
        rank.local_rank: rank.rank
        for rank in facts.ranks
        if rank.host == host and rank.rank is not None and rank.local_rank is not None
    }


def marks_of(events: Iterable[Event]) -> list[Mark]:
    """Return what the training marked, and errors of GPUs that the driver told (Xid), from a run's events."""
    return [
        Mark(event.time_ms, event.text, event.host if event.name == "gpu_xid" else "")
        for event in events
        if event.name in ("marker", "gpu_xid")
    ]


_READ = re.compile(
    r"(gpu|tpu|trn|ipu)\.|cpu$|cpu\.(mean|ofLimit|ofAllowed|iowait|steal|pressure)|(io|memory)\.pressure|memory_percent$"
    r"|proc\.|cgroup\.|swap\.used|disk\.(in|out)$|disk\..*\.(utilization|usagePercent)$"
    r"|network\.(recv|sent|ib\.|efa\.|ena\.)"
)
_LOGGED = re.compile(r"loss|nll|perplexity|ppl|objective|data|loader|input|fetch", re.I)


def reads(key: str) -> bool:
    """Return whether a rule may read a series, so that others need not be loaded."""
    return _READ.match(key) is not None


def is_measured_loss(key: str) -> bool:
    """Return whether a series is a loss that was exported like a metric (OpenTelemetry, Prometheus)."""
    return is_loss(key) and DEFINITIONS.find(key) is None


def reads_logged(name: str) -> bool:
    """Return whether a rule may read a logged value, besides the steps of any one."""
    return _LOGGED.search(name) is not None
