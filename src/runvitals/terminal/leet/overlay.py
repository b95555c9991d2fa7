"""The metrics of several runs drawn over each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runvitals.base.terminal_text import inert
from runvitals.model.errors import UnknownRun
from runvitals.terminal.leet.chart_view import ChartLine
from runvitals.terminal.leet.charts import Chart, natural
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.shared_use import Closed
from runvitals.terminal.leet.sources.run_source import RunSource


class RunOverlay:
    """The selected runs, of which each has one colour in all charts.

    Args:
        open_run: opens a run.
    """

    def __init__(self, open_run: Callable[[str], RunSource]) -> None:
        self._open = open_run
        self._runs: dict[str, tuple[RunData, int]] = {}

    def select(self, selected: Mapping[str, int]) -> None:
        """Set the runs and their colours. Those that stay are not read again."""
        before = self._runs
        self._runs = {run_id: (self._data_of(run_id), colour) for run_id, colour in selected.items()}
        for run_id in before.keys() - selected.keys():
            before[run_id][0].source.close()

    @property
    def run_ids(self) -> set[str]:
        """The runs that are there."""
        return set(self._runs)

    def poll(self) -> bool:
        """Read new records of all selected runs; return whether there are any.

        A run that was deleted is dropped.

        Raises:
            OSError: a journal cannot be read.
        """
        is_new = False
        for run_id, (data, _) in list(self._runs.items()):
            try:
                is_new |= data.poll()
                while data.progress < 1.0:
                    is_new |= data.poll()
            except Closed:
                continue  # it was deselected meanwhile
            except (UnknownRun, FileNotFoundError):
                is_new |= self._runs.pop(run_id, None) is not None
                data.source.close()
        return is_new

    def _data_of(self, run_id: str) -> RunData:
        return self._runs[run_id][0] if run_id in self._runs else RunData(self._open(run_id))

    def charts(self) -> list[Chart]:
        """Return a chart for each name that any of the runs logged."""
        by_title: dict[str, Chart] = {}
        for data, _ in self._runs.values():
            for chart in data.metric_charts():
                first = by_title.setdefault(chart.title, chart)
                if chart.axis and not first.axis:
                    by_title[chart.title] = chart
        return sorted(by_title.values(), key=lambda chart: natural(chart.title))

    def lines(self, charts: Sequence[Chart], on_time: bool) -> list[list[ChartLine]]:
        """Return the lines of all runs over steps, or over the time since each run's start."""
        drawn: list[list[ChartLine]] = [[] for _ in charts]
        for data, colour in self._runs.values():
            if data.run is None:
                continue
            own = set(data.source.logged_names())
            indexes = [index for index, chart in enumerate(charts) if chart.title in own]
            lines_of_charts = data.logged_lines([charts[index] for index in indexes], on_time)
            start_ms = data.run.started_ms if on_time else 0
            name = inert(data.run.name)
            for index, lines in zip(indexes, lines_of_charts, strict=True):
                drawn[index] += [ChartLine(name, line.series.shift(-start_ms), colour) for line in lines]
        return drawn
