"""A run as the screens show it: read once, then followed."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterable

from runvitals.leet.chart_view import ChartLine
from runvitals.leet.charts import Chart, SeriesName, line_names, metric_charts, system_charts
from runvitals.model.run import Run
from runvitals.query.console import ConsoleText
from runvitals.query.reader import RunReader
from runvitals.terminal import inert


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ProcessHistory:
    """The logged values of one process as columns; grows by the rows that were added."""

    def __init__(self) -> None:
        self._seq = -1
        self.columns: dict[str, tuple[array[float], array[int], array[float]]] = {}

    def update(self, reader: RunReader, writer: str) -> None:
        """Add the rows that were logged since the last call."""
        history = reader.histories[writer]
        for step, time_ms, values in history.after(self._seq):
            for key, value in values.items():
                steps, times, column = self.columns.setdefault(key, (array("d"), array("q"), array("d")))
                steps.append(step)
                times.append(time_ms)
                column.append(value)
        if history.seqs:
            self._seq = history.seqs[-1]


class RunData:
    """What a run recorded. `poll` reads what was appended, and may run in a thread; everything else reads
    memory.

    Args:
        run_id: the run.
        directory: the data folder.
        clock: ms UTC.
    """

    def __init__(self, run_id: str, directory: str, clock: Callable[[], int] = now_ms) -> None:
        self.reader = RunReader(run_id, directory)
        self.run: Run | None = None
        self._clock = clock
        self._logged: dict[str, ProcessHistory] = {}
        self._lock = threading.Lock()  # columns that are being copied cannot grow

    def poll(self) -> bool:
        """Read what was appended. Returns whether there is anything new to show.

        Raises:
            OSError: the journal cannot be read.
        """
        with self._lock:
            count = self.reader.poll()
            for writer in self.reader.histories:
                self._logged.setdefault(writer, ProcessHistory()).update(self.reader, writer)
            before, self.run = self.run, self.reader.run(self._clock())
        return bool(count) or before is None or before.state != self.run.state

    @property
    def is_running(self) -> bool:
        return self.run is not None and self.run.state == "running"

    def system_charts(self) -> list[Chart]:
        """The charts of system metrics."""
        writers = self.reader.samples.writers
        with self._lock:
            keys = {
                group: {key for name in names if name in writers for key in writers[name].keys}
                for group, names in self.reader.groups().items()
            }
        return system_charts(keys)

    def metric_charts(self) -> list[Chart]:
        """The charts of logged values."""
        with self._lock:
            keys = {writer: list(logged.columns) for writer, logged in self._logged.items()}
        return metric_charts(keys)

    def system_lines(self, charts: Iterable[Chart]) -> list[list[ChartLine]]:
        """The lines of charts of system metrics over time, read together."""
        charts = list(charts)
        wanted = {line.key for chart in charts for line in chart.lines}
        with self._lock:
            found = {
                SeriesName(series.key, series.host, series.role): series
                for series in self.reader.samples.each(self.reader.groups(), wanted.__contains__)
            }
        return [
            [
                ChartLine(name, found[line].t, found[line].values, colour)
                for colour, (line, name) in enumerate(zip(chart.lines, line_names(chart), strict=True))
                if line in found
            ]
            for chart in charts
        ]

    def logged_lines(self, charts: Iterable[Chart], on_time: bool) -> list[list[ChartLine]]:
        """The lines of charts of logged values, over steps or time."""
        with self._lock:
            return [
                [self._logged_line(line, on_time, colour) for colour, line in enumerate(chart.lines)]
                for chart in charts
            ]

    def time_range(self, window_ms: int | None) -> tuple[float, float]:
        """The times to show: all of the run, or its last `window_ms`."""
        assert self.run is not None
        start = self.run.started_ms
        writers = self.reader.facts.writers.values()
        end = max([start, *(writer.last_ms for writer in writers)])
        return (float(start if window_ms is None else max(start, end - window_ms)), float(end))

    def console(self) -> list[ConsoleText]:
        """The end of the output."""
        with self._lock:
            return self.reader.console.pieces()

    def _logged_line(self, line: SeriesName, on_time: bool, colour: int) -> ChartLine:
        steps, times, values = self._logged[line.origin].columns[line.key]
        return ChartLine(self._process(line.origin), times[:] if on_time else steps[:], values[:], colour)

    def _process(self, writer: str) -> str:
        """The name of a process that logs: its rank, else its host; with a number if it was started again."""
        names = [(self._rank_or_host(name), name) for name in sorted(self._logged)]
        name = self._rank_or_host(writer)
        same = [other for shown, other in names if shown == name]
        return name if len(same) < 2 else f"{name} #{same.index(writer) + 1}"

    def _rank_or_host(self, writer: str) -> str:
        facts = self.reader.facts.writer(writer)
        return inert(facts.host if facts.rank is None else f"rank {facts.rank}")
