"""Reads the means of many runs, and reads on where an earlier request ended for lack of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runvitals.model.errors import UnknownRun
from runvitals.server.charts.overlay.axis import Axis, Extract
from runvitals.server.charts.overlay.kept_means import KeptMeans
from runvitals.server.charts.overlay.lines import Line
from runvitals.server.charts.overlay.logged import LoggedPoints, read_logged
from runvitals.server.charts.overlay.run_means import RunMeans, means_of_line, run_means
from runvitals.server.charts.overlay.system import system_query
from runvitals.server.library.run_library import NamedRun, RunView

READING_S = 5.0
"""After so much time no further run is read."""
Read = Callable[[NamedRun, RunView, Sequence[str]], Mapping[str, RunMeans]]


@dataclass(frozen=True, slots=True)
class MeansSource:
    """Where the means of runs come from.

    Args:
        how: the axis, the part of it and the width; means that were read with the same are taken.
        read: returns the means of a run by key.
    """

    how: str
    read: Read


def logged_means(axis: Axis, part: Extract) -> MeansSource:
    """Return the source of the means of what runs logged."""

    def read(run: NamedRun, view: RunView, keys: Sequence[str]) -> dict[str, RunMeans]:
        points = read_logged(run, view, keys, axis)
        means = {key: run_means(of_key, axis, part) for key, of_key in points.items()}
        return {key: of_key for key, of_key in means.items() if of_key is not None}

    how = f"logged {axis.kind}:{axis.metric} {part.first} {part.last} {part.points} {part.log}"
    return MeansSource(how, read)


def system_means(runs: Sequence[NamedRun], keys: Sequence[str], axis: Axis, part: Extract) -> MeansSource:
    """Return the source of the means of sampled metrics. Devices and hosts of a run are one line.

    Raises:
        ValueError: an invalid key.
    """
    query = system_query(runs, list(dict.fromkeys(keys)), axis, part)

    def read(run: NamedRun, view: RunView, keys: Sequence[str]) -> dict[str, RunMeans]:
        lines = query.lines(run, view)
        means = {key: mean_of(line) for key, line in lines.items()}
        return {key: of_key for key, of_key in means.items() if of_key is not None}

    def mean_of(line: Line) -> RunMeans | None:
        if query.width is None:
            return run_means([LoggedPoints(line.x, line.y)], axis, part)
        return means_of_line(line.x, line.y, query.width)

    grids = [(on.t0_ms, on.count) for on in (*query.grids[:1], *query.grids[-1:])]
    how = f"system {axis.kind} {part.first} {part.last} {query.width} {part.points} {grids}"
    return MeansSource(how, read)


@dataclass(slots=True)
class GroupReading:
    """The means of runs.

    Attributes:
        means: by key and run.
        unread: the ids of runs that were not read for lack of time.
    """

    kept: KeptMeans
    source: MeansSource
    means: dict[str, dict[str, RunMeans]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    problems: dict[str, None] = field(default_factory=dict)

    async def of_runs(self, runs: Sequence[NamedRun], keys: Sequence[str]) -> None:
        """Read the means of runs, at least of one that is not known yet."""
        self.means = {key: {} for key in keys}
        began_s = time.monotonic()
        has_read = False
        for run in runs:
            kept_means = self.kept.of_run(run, keys, self.source.how)
            missing_keys = [key for key in keys if key not in kept_means]
            if missing_keys and has_read and time.monotonic() - began_s > READING_S:
                self.unread.add(run.id)
                continue
            self._add(run, kept_means)
            if missing_keys:
                has_read = True
                await self._read(run, missing_keys)

    async def _read(self, run: NamedRun, keys: Sequence[str]) -> None:
        keep = self.kept.keeper(run, self.source.how)

        def work(view: RunView) -> Mapping[str, RunMeans]:
            noted = view.note_problems()
            means = self.source.read(run, view, keys)
            self.problems |= {f"{run.id}: {problem}": None for problem in noted}
            return means

        try:
            means = await run.opened.use(work)
        except UnknownRun:
            return  # it was deleted a moment ago
        keep(keys, means)
        self._add(run, means)

    def _add(self, run: NamedRun, means: Mapping[str, RunMeans | None]) -> None:
        for key, of_run in means.items():
            if of_run is not None:
                self.means[key][run.id] = of_run
