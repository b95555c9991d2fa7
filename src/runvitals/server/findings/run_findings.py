"""The findings about a run, from the library: journals and the store give the same."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np
from cachetools import LRUCache

from runvitals.base.buckets import Buckets, Grid
from runvitals.findings.finding import Findings
from runvitals.findings.observation import (
    DEFAULT_INTERVAL_S,
    FEWER,
    extent_of,
    is_measured_loss,
    marks_of,
    ranks_on,
    reads,
    reads_logged,
)
from runvitals.findings.observed_run import ObservedRun, host_of
from runvitals.findings.training import LoggedColumn, distance_from_steps, training_of
from runvitals.findings.windows import (
    MAX_VALUE,
    HostColumns,
    TimeWindows,
    WindowColumn,
    interval_of,
    windows_of,
)
from runvitals.model.state import RUNNING
from runvitals.readers.journals.rates import rate_of
from runvitals.server.library.run_library import BucketedSeries, LoggedColumns, RunView, SeriesSelection

if TYPE_CHECKING:  # the local page loads no accounts
    from runvitals.server.access.control import AccessControl
    from runvitals.server.access.requester import Requester

FRESH_MS = 30_000
MAX_LOAD = 0.01
"""Of a core, for a run that goes on, however often it is asked for."""
MAX_EVENTS = 10_000
MAX_LOGGED_NAMES = 20
MAX_MEASURED = 20_000
"""Values of a loss that is measured like a metric."""
FIRST_INTERVAL_S = 30.0
"""Other clients declare how long they are silent at most, which may be far longer than between samples."""
_MAX_KEPT = 100


class FindingSource(Protocol):
    """Gives the findings about a run."""

    def findings(self, view: RunView, now_ms: int) -> Findings:
        """Return the findings about a run, without prices."""

    def price(self, view: RunView, now_ms: int, access: AccessControl, requester: Requester) -> float | None:
        """Return the organisation's price of a run's device-hour; None if it has none or may not be seen."""


@dataclass(frozen=True, slots=True)
class _JudgedView:
    """Findings, as of a position of a run; one that goes on is not judged again before a time."""

    position: Mapping[str, int]
    findings: Findings
    next_ms: float | None

    def holds(self, goes_on: bool, position: Mapping[str, int], now_ms: int) -> bool:
        """Whether they are not judged again."""
        if goes_on:
            return self.next_ms is not None and now_ms < self.next_ms
        return self.next_ms is None and position == self.position


class JudgedViews:
    """Judges runs when they are asked for; a `FindingSource`. Thread-safe.

    The findings about the last runs are kept in memory until there is something new of them; those of a run
    that goes on for half a minute, or for longer if judging takes long.
    """

    def __init__(self) -> None:
        self._kept: LRUCache[str, _JudgedView] = LRUCache(_MAX_KEPT)
        self._lock = Lock()

    def findings(self, view: RunView, now_ms: int) -> Findings:
        """Return the findings about a run, without prices."""
        position = dict(view.position())
        with self._lock:
            kept = self._kept.get(view.run_id)
        goes_on = view.run(now_ms).state == RUNNING
        if kept is not None and kept.holds(goes_on, position, now_ms):
            return kept.findings
        began_s = time.thread_time()
        findings = judge_view(view, now_ms)
        rest_ms = max(FRESH_MS, 1000 * (time.thread_time() - began_s) / MAX_LOAD)
        with self._lock:
            self._kept[view.run_id] = _JudgedView(position, findings, now_ms + rest_ms if goes_on else None)
        return findings

    def price(self, view: RunView, now_ms: int, access: AccessControl, requester: Requester) -> None:
        """Return None: journals know no prices."""


def judge_view(view: RunView, now_ms: int) -> Findings:
    """Judge a run."""
    from runvitals.findings.judge import judge  # the rules: loaded for the first run

    return judge(observe_view(view, now_ms))


def observe_view(view: RunView, now_ms: int, price_per_device_hour: float | None = None) -> ObservedRun:
    """Return what rules see of a run: its series in windows, its logged losses, its marks."""
    facts = view.run(now_ms)
    sampled = view.sampled_keys()
    rates = {rate.key for key in sampled if (rate := rate_of(key)) is not None}
    losses = sorted(key for key in sampled if is_measured_loss(key))[:MAX_LOGGED_NAMES]
    keys = tuple(sorted(key for key in sampled if reads(key) and key not in rates))
    selection = SeriesSelection(keys=keys)
    extent = view.extent(SeriesSelection(keys=one_of_each_kind(keys))) if keys else None
    logged = _logged(view)
    start_ms, ended_ms = extent_of(facts.started_ms, facts.ended_ms, extent or (), logged)
    end_ms = ended_ms or (extent[1] if extent is not None else facts.started_ms)
    declared_s = max((host.interval_s or DEFAULT_INTERVAL_S for host in facts.hosts), default=0.0)
    windows, hosts = _windows(
        view, selection, start_ms, max(end_ms, start_ms + 1), declared_s or DEFAULT_INTERVAL_S
    )
    marks = marks_of(view.events(now_ms, 0, MAX_EVENTS))
    return ObservedRun(
        windows=windows,
        hosts=[
            host_of(columns, facts.machines.get(columns.name, {}), ranks_on(facts, columns.name))
            for columns in hosts
        ],
        training=training_of(windows, logged, marks, _measured(view, losses, start_ms, end_ms)),
        state=facts.state,
        started_ms=start_ms,
        ended_ms=ended_ms,
        now_ms=ended_ms or min(now_ms, end_ms + windows.width_ms),
        out_of_memory=facts.out_of_memory,
        price_per_device_hour=price_per_device_hour,
    )


def one_of_each_kind(keys: Iterable[str]) -> tuple[str, ...]:
    """Return a key of each collector: what it measures begins and ends together.

    Example:
        >>> one_of_each_kind(["cpu", "gpu.0.gpu", "gpu.0.temp", "gpu.1.gpu"])
        ('cpu', 'gpu.0.gpu')
    """
    return tuple({key.partition(".")[0]: key for key in sorted(keys, reverse=True)}.values())[::-1]


def _windows(
    view: RunView, selection: SeriesSelection, start_ms: int, end_ms: int, declared_s: float
) -> tuple[TimeWindows, list[HostColumns]]:
    """Return windows that are wide enough for how often a run was sampled, and its hosts' series in them."""
    windows = windows_of(start_ms, end_ms, min(declared_s, FIRST_INTERVAL_S))
    hosts = _in_windows(view, selection, windows)
    seen_s = max((host.interval_s for host in hosts), default=0.0)
    is_so = declared_s / FEWER <= seen_s <= declared_s * FEWER
    wider = windows_of(start_ms, end_ms, declared_s if is_so else seen_s)
    if wider.width_ms <= windows.width_ms:
        return windows, hosts
    return wider, _in_windows(view, selection, wider)


def _in_windows(view: RunView, selection: SeriesSelection, windows: TimeWindows) -> list[HostColumns]:
    if not selection.keys:
        return []
    series = view.read_buckets(selection, Grid(windows.start_ms, windows.width_ms, windows.count))
    return [_columns(name, bucketed, windows) for name, bucketed in _by_host(series).items()]


def _by_host(series: Iterable[BucketedSeries]) -> dict[str, list[BucketedSeries]]:
    by_host: dict[str, list[BucketedSeries]] = {}
    for each in series:
        by_host.setdefault(each.host, []).append(each)
    return by_host


def _measured(view: RunView, keys: Iterable[str], start_ms: int, end_ms: int) -> dict[str, LoggedColumn]:
    """Return series as rows without steps, those of the first host that has them."""
    selection = SeriesSelection(keys=tuple(sorted(keys)))
    if not selection.keys:
        return {}
    width_ms = max(1000, -(-(end_ms - start_ms) // MAX_MEASURED))
    grid = Grid(start_ms, width_ms, (end_ms - start_ms) // width_ms + 1)
    columns: dict[str, LoggedColumn] = {}
    for each in sorted(view.read_buckets(selection, grid), key=lambda series: series.host):
        present = ~np.isnan(each.buckets.mean)  # a NaN is a gap
        times, values = each.buckets.t[present], each.buckets.mean[present]
        columns.setdefault(each.key, LoggedColumn(times, np.full(len(times), -1, dtype=np.int64), values))
    return columns


def _columns(name: str, series: Iterable[BucketedSeries], windows: TimeWindows) -> HostColumns:
    samples = np.zeros(windows.count, dtype=np.int64)
    columns: dict[str, WindowColumn] = {}
    for each in series:
        positions = (each.buckets.t - windows.start_ms) // windows.width_ms
        np.maximum.at(samples, positions, each.buckets.n)
        if each.key not in columns and each.buckets.n.any():
            columns[each.key] = _column(each.buckets, positions, windows.count)
    return HostColumns(name, windows, columns, samples, interval_of(samples, windows))


def _column(buckets: Buckets, positions: np.ndarray, count: int) -> WindowColumn:
    arrays = [np.full(count, np.nan) for _ in range(3)]
    for array, values in zip(arrays, (buckets.mean, buckets.min, buckets.max), strict=True):
        array[positions] = np.where(np.abs(values) < MAX_VALUE, values, np.nan)
    return WindowColumn(*arrays)


def _logged(view: RunView) -> dict[str, LoggedColumn]:
    """The logged values that rules read, and one more at least, which tells the steps, of all processes."""
    names = sorted(view.logged_names())
    chosen = [name for name in names if reads_logged(name)][:MAX_LOGGED_NAMES]
    telling = sorted((name for name in names if name not in chosen), key=distance_from_steps)
    chosen += telling[: max(1, 3 - len(chosen))]
    if not chosen:
        return {}
    return join_processes(view.logged_columns(chosen))


def join_processes(processes: Iterable[LoggedColumns]) -> dict[str, LoggedColumn]:
    """Join what several processes logged under the same names, by time."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for process in processes:
        for name, (steps, times, values) in process.columns.items():
            parts.setdefault(name, []).append((times, steps, values))
    joined = {}
    for name, columns in parts.items():
        times, steps, values = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
        order = np.argsort(times, kind="stable")
        whole_steps = np.where(np.isfinite(steps), steps, -1).astype(np.int64)
        joined[name] = LoggedColumn(
            times[order].astype(np.int64), whole_steps[order], values[order].astype(np.float64)
        )
    return joined
