"""A run as the screens show it: charts and their lines, from any source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runvitals.base.terminal_text import inert
from runvitals.model.run import Run
from runvitals.readers.journals.console import ConsoleText
from runvitals.terminal.leet.chart_view import ChartLine
from runvitals.terminal.leet.charts import Chart, line_names, metric_charts, system_charts
from runvitals.terminal.leet.line_filter import LineFilter
from runvitals.terminal.leet.series_column import SeriesColumn, over_metric
from runvitals.terminal.leet.sources.run_source import LoggedLine, RunSource


class RunData:
    """The values and facts of a run, for charts, overview and console.

    `poll` reads new records and may run in a thread; everything else reads memory.

    Args:
        source: the run.

    Attributes:
        only: the nodes, ranks and devices that are shown.
        until_ms: nothing after this time is shown, as a replay needs it; None: everything.
    """

    def __init__(self, source: RunSource) -> None:
        self.source = source
        self.only = LineFilter()
        self.until_ms: float | None = None

    def poll(self) -> bool:
        """Read new values; return whether there are any to show, or raise OSError."""
        return self.source.poll()

    @property
    def run(self) -> Run | None:
        """The facts, None before the first poll."""
        return self.source.run

    @property
    def progress(self) -> float:
        """The share of the run that was read, up to 1.0."""
        return self.source.progress()

    @property
    def is_running(self) -> bool:
        """Whether the run was running at the last poll."""
        return self.run is not None and self.run.state == "running"

    def system_charts(self) -> list[Chart]:
        """Return the charts of system metrics."""
        charts = system_charts(self.source.system_keys())
        return [selected for chart in charts if (selected := self.only.of_system(chart)).lines]

    def metric_charts(self) -> list[Chart]:
        """Return the charts of logged values."""
        return metric_charts(self.source.logged_names(), self.run.defined_metrics if self.run else None)

    def system_lines(self, charts: Iterable[Chart], x_range: tuple[float, float]) -> list[list[ChartLine]]:
        """Return the lines of charts of system metrics over time."""
        charts = list(charts)
        series = self.source.system([line for chart in charts for line in chart.lines], x_range)
        return [
            [
                ChartLine(name, self._until(series[line], series[line]), colour)
                for colour, (line, name) in enumerate(zip(chart.lines, line_names(chart), strict=True))
                if line in series
            ]
            for chart in charts
        ]

    def logged_lines(self, charts: Iterable[Chart], on_time: bool) -> list[list[ChartLine]]:
        """Return the lines of charts of logged values, over time, steps or the x metric of the chart."""
        return [self._lines_of(chart.title, "" if on_time else chart.axis, on_time) for chart in charts]

    def _lines_of(self, name: str, axis: str, on_time: bool) -> list[ChartLine]:
        lines = self.source.logged_lines(name)
        names = process_names(lines)
        axes = {line.process: line.steps for line in self.source.logged_lines(axis)} if axis else {}

        def drawn(line: LoggedLine) -> SeriesColumn:
            shown = self._until(line.times if on_time else line.steps, line.times)
            return over_metric(shown, axes.get(line.process, SeriesColumn())) if axis else shown

        return [
            ChartLine(shown, drawn(line), colour)
            for colour, (line, shown) in enumerate(zip(lines, names, strict=True))
            if self.only.shows_process(line.host, line.rank)
        ]

    def time_of_step(self, name: str, step: float) -> float | None:
        """Return the time in ms of the value closest to a step; None without values."""
        for line in self.source.logged_lines(name):
            index = line.steps.nearest_index(step)
            if index is not None and index < line.times.count:
                return float(line.times.x[index])
        return None

    def step_at(self, name: str, time_ms: float) -> float | None:
        """Return the step of the value logged closest to a time under a name; None without values."""
        for line in self.source.logged_lines(name):
            index = line.times.nearest_index(time_ms)
            if index is not None and index < line.steps.count:
                return float(line.steps.x[index])
        return None

    def time_range(self) -> tuple[float, float]:
        """Return the start of the run and the time of its newest record, in ms UTC."""
        start = float(self.run.started_ms) if self.run is not None else 0.0
        return start, max(start, self.end_ms())

    def end_ms(self) -> float:
        """Return the time of the newest record, or of the replay."""
        end = self.source.end_ms()
        return end if self.until_ms is None else min(end, self.until_ms)

    def console(self) -> list[ConsoleText]:
        """Return the end of the output."""
        pieces = self.source.console()
        if self.until_ms is None:
            return pieces
        return [piece for piece in pieces if piece.time_ms <= self.until_ms]

    def _until(self, series: SeriesColumn, times: SeriesColumn) -> SeriesColumn:
        """Return the values of a series up to the time of the replay."""
        if self.until_ms is None:
            return series
        return series.first(times.count_until(self.until_ms))


def process_names(lines: Sequence[LoggedLine]) -> list[str]:
    """Return the names of processes that log: rank or host; with a number if one was started again."""
    plain = [inert(line.host if line.rank is None else f"rank {line.rank}") for line in lines]
    return [
        name if plain.count(name) < 2 else f"{name} #{plain[: index + 1].count(name)}"
        for index, name in enumerate(plain)
    ]
