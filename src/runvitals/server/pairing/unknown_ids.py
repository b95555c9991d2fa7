"""Samples whose runs or metrics the metadata store does not know, in a sample store of any engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from runvitals.model.durations import DAY_MS
from runvitals.server.pairing.pairing import PairedStore
from runvitals.server.pairing.recovery import RecoveredRun
from runvitals.store.samples.interface import END_OF_TIME_MS, LatestSample, ReadResult, SeriesSamples


class RepairableStore(PairedStore, Protocol):
    """A sample store of any engine that `store repair` can repair."""

    def runs(self) -> list[int]:
        """The ids of the runs that have samples, ascending."""

    def days(self, run: int) -> list[int]:
        """The days since 1970, UTC, on which a run may have samples, ascending."""

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        """Return the samples of runs, of all metrics if None."""

    def latest(self, runs: Sequence[int], metrics: Collection[int] | None = None) -> list[LatestSample]:
        """Return the newest sample of each series of runs."""

    def put(self, run: int, series: Sequence[SeriesSamples]) -> None:
        """Add samples to a run."""

    def delete(self, runs: Sequence[int]) -> None:
        """Delete all samples of runs."""

    def flush(self) -> None:
        """Return once everything is durable."""


def renumber(store: RepairableStore, largest: int, after: int) -> Iterator[str]:
    """Give the runs whose ids are damaged new ones. Yields a line about each.

    Args:
        largest: ids from 1 to this one are sound.
        after: new ids are larger.
    """
    runs = store.runs()
    after = max([after, *(run for run in runs if run <= largest)])
    for run in runs:
        if 1 <= run <= largest:
            continue
        after += 1
        store.put(after, store.read([run], None, 0, END_OF_TIME_MS - 1).series)
        store.delete([run])
        yield f"run {run} has an id that no server assigns; its samples are those of run {after} now"


def unknown_runs(store: RepairableStore, run_ids: Collection[int]) -> list[RecoveredRun]:
    """The runs that have samples and are not known, with the metrics and times of those samples."""
    recovered = [_extent(store, run) for run in store.runs() if run not in run_ids]
    return [run for run in recovered if run.metrics]


def _extent(store: RepairableStore, run: int) -> RecoveredRun:
    metrics, times = set[int](), set[int]()
    for day in store.days(run):
        for series in store.read([run], None, day * DAY_MS, (day + 1) * DAY_MS - 1).series:
            if len(series.t):
                metrics.add(series.metric)
                times.update((int(series.t[0]), int(series.t[-1])))
    return RecoveredRun(run, tuple(sorted(metrics)), min(times, default=0), max(times, default=0))


def runs_with_metrics(
    store: RepairableStore, runs: Collection[int], metrics: Collection[int]
) -> dict[int, tuple[int, ...]]:
    """Those of the runs that have samples of some of the metrics, with these."""
    return {
        latest.run: tuple(sorted(set(latest.metrics.tolist()).intersection(metrics)))
        for latest in store.latest(sorted(runs), metrics)
    }
