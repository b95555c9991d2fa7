"""The lines of a panel: its metrics over its runs, as charts over each other have them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from runvitals.base import deadline
from runvitals.server.charts import series
from runvitals.server.charts.overlay.axis import Axis, Extract, scale_of_width
from runvitals.server.charts.overlay.group_reading import GroupReading, logged_means, system_means
from runvitals.server.charts.overlay.kept_means import KeptMeans
from runvitals.server.charts.overlay.lines import KeyLines, grouped_lines
from runvitals.server.charts.overlay.plan import MetricNames
from runvitals.server.charts.overlay.run_means import GroupLine, RunMeans, group_line, shared_width
from runvitals.server.charts.overlay.run_reading import RunReading
from runvitals.server.library.run_library import NamedRun, RunView, SeriesSelection
from runvitals.server.reports.kept_lines import KeptLines, LineQuery
from runvitals.server.reports.panel_runs import PanelGroup, PanelRuns
from runvitals.server.reports.panels import PanelExtract, PanelMetric, ShownPanel, Source, is_recorded

MAX_RUNS_BY_DEVICE: Final = 8
"""Of the first so many runs each device is shown, as in a workspace."""
_MAX_BANDS: Final = 4
"""With more runs, the extremes of each are not drawn, as in a workspace."""
_MAX_DEVICE_POINTS: Final = 500
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
_WILDCARD: Final = re.compile(r"[?[]")
Encode = Callable[[], dict[str, Any]]


class PanelLines:
    """Reads the lines of a panel.

    Args:
        kept: means of runs that other panels have read.
        kept_lines: lines that other panels have read.
        others: panels of the same page, which will be requested too.

    Attributes:
        problems: parts that could not be read, each once.
    """

    def __init__(
        self,
        panel: ShownPanel,
        runs: PanelRuns,
        kept: KeptMeans,
        kept_lines: KeptLines,
        others: Sequence[ShownPanel],
    ) -> None:
        self._panel = panel
        self._runs = runs
        self._kept = kept
        self._kept_lines = kept_lines
        self._others = others
        self._names: tuple[list[str], list[str]] = [], []
        self.problems: dict[str, None] = {}

    async def read(self, requested: PanelExtract) -> Encode:
        """Read what the panel shows; returns what makes its answer of it, in a thread.

        Raises:
            ValueError: the panel or the request is invalid, or too much would have to be read.
            TooSlow: it takes too long.
        """
        names = names_of(self._runs)
        system = {_PLACEHOLDER.sub("*", about["key"]): about for about in names["system"]}
        self._names = names["logged"], list(system)
        metrics = self._panel.metrics(*self._names)
        metric_names = {
            "logged": [metric.name for metric in metrics if metric.source == "logged"],
            "system": _described(metrics, system),
        }
        if not metrics:
            return lambda: {"names": metric_names}
        axis = self._panel.axis(metrics)
        part = self._part(self._panel, requested)
        if self._panel.is_by_device:
            devices = await self._devices(metrics, axis, part)
            return lambda: {"x": str(axis), "names": metric_names, "devices": devices}
        alike = [metric for panel in self._next_alike(requested) for metric in panel.metrics(*self._names)]
        readings = [
            await self._of_source(source, metrics, axis, part, alike) for source in ("logged", "system")
        ]

        def encode() -> dict[str, Any]:
            lines: dict[str, list[dict[str, Any]]] = {metric.id: [] for metric in metrics}
            for of_source in readings:
                for metric_id, groups in of_source():
                    lines[metric_id] += groups
            return {"x": str(axis), "names": metric_names, "lines": lines}

        return encode

    def _part(self, panel: ShownPanel, requested: PanelExtract) -> Extract:
        lines_of_each = len(self._runs.runs) + len(self._runs.groups)
        return panel.part(requested, lines_of_each * len(panel.metrics(*self._names)))

    async def _of_source(
        self,
        source: Source,
        metrics: Sequence[PanelMetric],
        axis: Axis,
        part: Extract,
        alike: Sequence[PanelMetric],
    ) -> Callable[[], Iterable[tuple[str, list[dict[str, Any]]]]]:
        """Read the metrics of a source: the lines of runs, and those of groups.

        Args:
            alike: those of the next panels that show the same part of the same runs.
        """
        by_key = {_key(metric): metric.id for metric in metrics if metric.source == source}
        keys = list(by_key)
        if not keys:
            return lambda: ()
        query = LineQuery(tuple(shown_runs for _, shown_runs in self._runs.shown), source, axis, part)
        ahead = [_key(metric) for metric in dict.fromkeys(alike) if metric.source == source]
        lines_of_runs, problems = await self._kept_lines.read(query, self._runs.named, keys, ahead)
        self.problems |= problems
        means = await self._means(source, keys, axis, part) if self._runs.groups else {}

        def lines() -> Iterable[tuple[str, list[dict[str, Any]]]]:
            for key_lines in lines_of_runs:
                yield by_key[key_lines.key], _as_json(key_lines)
            for key, of_runs in means.items():
                yield by_key[key], _group_lines(self._runs.groups, of_runs, axis, part)

        return lines

    def _next_alike(self, requested: PanelExtract) -> list[ShownPanel]:
        """Return the next panels that show the same part of the same runs."""
        mine = self._panel
        positions = [position for position, panel in enumerate(self._others) if panel.id == mine.id]
        next_ones = self._others[positions[0] + 1 :] if positions else ()
        part = self._part(mine, requested)
        return [
            panel for panel in next_ones if panel.shows_alike(mine) and self._part(panel, requested) == part
        ]

    async def _means(
        self, source: Source, keys: Sequence[str], axis: Axis, part: Extract
    ) -> dict[str, dict[str, RunMeans]]:
        members = {run.id: run for group in self._runs.groups for run in group.runs}
        runs = list(members.values())
        is_logged = source == "logged"
        how = logged_means(axis, part) if is_logged else system_means(runs, keys, axis, part)
        reading = GroupReading(self._kept, how)
        await reading.of_runs(runs, keys)
        self.problems |= reading.problems
        if reading.unread:
            self.problems[f"{len(reading.unread)} runs were not read for lack of time: load it again"] = None
        return reading.means

    async def _devices(
        self, metrics: Sequence[PanelMetric], axis: Axis, part: Extract
    ) -> dict[str, dict[str, Any]]:
        """Read the lines of each device and rank of the first runs, as the page of a run has them."""
        sampled = tuple(_key(metric) for metric in metrics if metric.source == "system")
        logged = [metric.name for metric in metrics if metric.source == "logged"]
        if axis.kind == "metric" and logged:
            logged.append(axis.metric)
        names = tuple(_WILDCARD.sub(_escaped, name) for name in logged)
        first, last = part.first, part.last

        def read(run: NamedRun, view: RunView) -> dict[str, Any]:
            zero = run.started_ms if axis.kind == "relative" else 0
            of_run: dict[str, Any] = {"sampled": None, "logged": None}
            if sampled:
                t0, t1 = (None if x is None else zero + round(x) for x in (first, last))
                selection = SeriesSelection(keys=sampled)
                of_run["sampled"] = series.metrics(
                    view, selection, t0, t1, _MAX_DEVICE_POINTS, run.started_ms if part.log else None
                )
            if names:
                steps = (first, last) if axis.kind == "step" else (None, None)
                rows = series.LoggedSelection(names, None, *steps)
                of_run["logged"] = series.logged_values(view, rows, Extract(_MAX_DEVICE_POINTS, log=part.log))
                if axis.kind in ("relative", "wall") and (first, last) != (None, None):
                    after = -math.inf if first is None else zero + first
                    before = math.inf if last is None else zero + last
                    _cut_by_time(of_run["logged"]["groups"], after, before)
            for values in filter(None, of_run.values()):
                values["cursor"] = ""  # a reader of the report may follow nothing
            return of_run

        reading = RunReading(self._runs.named[:MAX_RUNS_BY_DEVICE])
        lines = await reading.each(read)
        self.problems |= reading.problems
        return lines


def _cut_by_time(groups: Sequence[dict[str, Any]], first: float, last: float) -> None:
    """Leave out what was logged before or after a time."""
    for group in groups:
        positions = [
            position for position, time in enumerate(group["t"]) if time is not None and first <= time <= last
        ]
        for name in ("step", "t", "n"):
            if group[name] is not None:
                group[name] = [group[name][position] for position in positions]
        for name in ("series", "min", "max"):
            for key, values in (group[name] or {}).items():
                group[name][key] = [values[position] for position in positions]


def names_of(runs: PanelRuns) -> dict[str, Any]:
    """Return the names of all metrics that some of the runs have, as plans of charts have them."""
    names = MetricNames()
    for _, shown_runs in runs.shown:
        names.join(shown_runs.metrics)
    return names.as_json()


def _described(metrics: Sequence[PanelMetric], system: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is known of the sampled metrics among those of a panel."""
    names = [metric.name for metric in metrics if metric.source == "system"]
    return [
        about
        for pattern, about in system.items()
        if any(is_recorded("system", name, (pattern,)) for name in names)
    ]


def _key(metric: PanelMetric) -> str:
    """Return the key of a metric as overlays take it: of the system, a glob with `*` alone."""
    return metric.name if metric.source == "logged" else _WILDCARD.sub(_escaped, metric.name)


def _escaped(match: re.Match[str]) -> str:
    return f"[{match[0]}]"


def _as_json(lines: KeyLines) -> list[dict[str, Any]]:
    extremes = len(lines.lines) <= _MAX_BANDS
    return [{**group, "width": lines.width} for group in grouped_lines(lines.lines, extremes)]


def _group_lines(
    groups: Sequence[PanelGroup], means: dict[str, RunMeans], axis: Axis, part: Extract
) -> list[dict[str, Any]]:
    deadline.check()
    scale = scale_of_width(axis, shared_width(list(means.values()), part), part.log)
    lines = []
    for number, group in enumerate(groups):
        line = group_line(number, [means[run.id] for run in group.runs if run.id in means], scale)
        if line is not None:
            lines.append({"x": line.x.tolist(), "width": scale.width, "lines": [_group_json(group.id, line)]})
    return lines


def _group_json(group_id: str, line: GroupLine) -> dict[str, Any]:
    return {
        "run": group_id,
        "y": line.y.tolist(),
        "min": line.low.tolist(),
        "max": line.high.tolist(),
        "n": line.n.tolist(),
    }
