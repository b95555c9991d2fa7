"""System statistics and sparklines of runs of this machine, computed from their journals and kept in memory.

A journal must be read completely for them, so a request computes those of as many runs as it has time for.
Runs that are left out have no values in its response, and are computed by the following requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from runvitals.base.buckets import Buckets, reduce
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.run import Run
from runvitals.model.state import RUNNING
from runvitals.readers.journals.globs import is_glob
from runvitals.readers.journals.reader import RunReader
from runvitals.server.library.local.journal_run import JournalView
from runvitals.server.library.run_library import RunView, SeriesSelection
from runvitals.server.runs.run_lists import sparkline, sparkline_grid
from runvitals.server.runs.system_statistics import statistics_of

TIME_S = 3.0
"""How long one request reads journals. Another one is begun until then, so it may take longer."""
_FRESH_MS = 60_000
"""The values of a running run are computed again after this time."""
_MAX_KEPT = 10_000


@dataclass(slots=True)
class _Summary:
    """Facts about a run as of the time of its newest record."""

    last_ms: int
    read_ms: int
    statistics: dict[str, float]
    sparklines: dict[str, list[float]] = field(default_factory=dict)


class JournalSummaries:
    """The statistics and sparklines of runs, by run id.

    Args:
        directory: the data folder.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._by_run: dict[str, _Summary] = {}

    def read(self, runs: Sequence[Run], sparklines: Sequence[str], now_ms: int) -> int:
        """Compute what is missing, while there is time; returns how many runs are still missing.

        Call it in one thread at a time.
        """
        until_s = time.monotonic() + TIME_S
        missing = [run for run in runs if not self._is_known(run, sparklines, now_ms)]
        for done, run in enumerate(missing):
            if time.monotonic() > until_s:
                return len(missing) - done
            self._read(run, sparklines, now_ms)
        return 0

    def statistics(self) -> Mapping[str, Mapping[str, float]]:
        """Return the system statistics of the runs that were read, by run id."""
        return {run_id: summary.statistics for run_id, summary in self._by_run.items()}

    def sparklines(self, run: Run, keys: Sequence[str]) -> dict[str, list[float]]:
        """Return the sparklines of a run; empty ones if it was not read."""
        summary = self._by_run.get(run.id)
        return {key: [] if summary is None else summary.sparklines.get(key, []) for key in keys}

    def _is_known(self, run: Run, sparklines: Sequence[str], now_ms: int) -> bool:
        summary = self._by_run.get(run.id)
        if summary is None or any(key not in summary.sparklines for key in sparklines):
            return False
        if run.state == RUNNING:
            return now_ms - summary.read_ms < _FRESH_MS
        return summary.last_ms == _last_ms(run)

    def _read(self, run: Run, sparklines: Sequence[str], now_ms: int) -> None:
        last_ms = _last_ms(run)
        before = self._by_run.pop(run.id, None)
        keys = set(sparklines) | (set() if before is None else before.sparklines.keys())
        # Not one of the readers that requests share: they would be dropped for the many runs of a list.
        reader = RunReader(run.id, self._directory)
        summary = _Summary(last_ms, now_ms, {}, {key: [] for key in keys})
        try:
            reader.poll()
        except FileNotFoundError:  # deleted a moment ago
            self._keep(run.id, summary)
            return
        view = JournalView(reader)
        summary.statistics = statistics_of(view, run.started_ms, last_ms)
        for key in keys:
            summary.sparklines[key] = _sparkline(view, key, run.started_ms, last_ms)
        self._keep(run.id, summary)

    def _keep(self, run_id: str, summary: _Summary) -> None:
        self._by_run[run_id] = summary
        while len(self._by_run) > _MAX_KEPT:
            del self._by_run[next(iter(self._by_run))]


def _last_ms(run: Run) -> int:
    return run.started_ms + run.duration_ms if run.ended_ms is None else run.ended_ms


def _sparkline(view: RunView, key: str, started_ms: int, last_ms: int) -> list[float]:
    on = sparkline_grid(started_ms, last_ms)
    if is_glob(key) or DEFINITIONS.find(key) is not None:
        buckets = view.read_chart(SeriesSelection((key,)), started_ms, last_ms, on, 0).buckets or []
        return sparkline(on, [series.buckets for series in buckets])
    lines: list[Buckets] = []
    for process in view.logged_columns([key]):
        for _, times, values in process.columns.values():
            order = np.argsort(times, kind="stable")
            lines.append(reduce(on, times[order].astype(np.int64), values[order]))
    return sparkline(on, lines)
