"""The runs of a data folder, and the metrics of the selected ones over each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message

from runvitals.leet.chart_grid import ChartGrid, ChartValues
from runvitals.leet.chart_screen import ChartScreen
from runvitals.leet.charts import Chart
from runvitals.leet.help_screen import HelpScreen
from runvitals.leet.keys import RUNS
from runvitals.leet.overlay import RunOverlay
from runvitals.leet.run_data import now_ms
from runvitals.leet.run_table import MOST_SELECTED, ListedRuns
from runvitals.leet.runs_pane import RunsPane
from runvitals.terminal import inert


class RunsScreen(ChartScreen):
    """The screen of the runs.

    Args:
        directory: the data folder.
        interval_s: between two looks at it.
    """

    DEFAULT_CSS = """
    RunsScreen #runs { width: 2fr; }
    RunsScreen #metrics { width: 3fr; }
    """
    HINT = " h help · enter open · space select · f filter runs · / filter metrics · q quit"
    BINDINGS = [Binding(key.keys, key.action, key.text, show=False) for key in RUNS]

    class Opened(Message):
        """The user opened a run."""

        def __init__(self, run_id: str) -> None:
            super().__init__()
            self.run_id = run_id

    def __init__(self, directory: str, interval_s: float) -> None:
        super().__init__()
        self._directory = directory
        self._interval_s = interval_s
        self._overlay = RunOverlay(directory)
        self.table = ListedRuns(directory)
        self.runs = RunsPane(self.table, id="runs")
        self.metrics = ChartGrid("Metrics of the selected runs", (3, 3), self._read, id="metrics")

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal():
            yield self.runs
            yield self.metrics
        yield self.footer
        yield self.filter

    def on_mount(self) -> None:
        self.runs.focus()
        self.run_worker(self._follow(), exclusive=True, group="follow")

    def on_resize(self) -> None:
        self.call_after_refresh(self.header.show, [[(f" {inert(self._directory)}", "title")]])
        self.call_after_refresh(self.show_footer)

    async def _follow(self) -> None:
        while True:
            if self.is_current:
                try:
                    self.table.set_runs(await asyncio.to_thread(self.table.read, now_ms()))
                    is_new = await asyncio.to_thread(self._overlay.poll)
                except OSError as error:
                    self.message = f"the runs cannot be read: {error.strerror or error}"
                    self.show_footer()
                else:
                    self.runs.redraw()
                    if is_new:
                        self.metrics.set_charts(self._overlay.charts())
            await asyncio.sleep(self._interval_s)

    def _read(self, charts: Sequence[Chart]) -> ChartValues:
        return ChartValues(self._overlay.lines(charts, self.on_time), None, self.on_time, 0.0)

    def _draw_selection(self) -> None:
        self.runs.redraw()
        self._overlay.select(self.table.selected)
        self.run_worker(self._read_selection(), exclusive=True, group="selection")

    async def _read_selection(self) -> None:
        try:
            await asyncio.to_thread(self._overlay.poll)
        except OSError as error:
            self.message = f"a run cannot be read: {error.strerror or error}"
            self.show_footer()
        self.metrics.set_charts(self._overlay.charts())

    # -- keys

    def action_open(self) -> None:
        if self.table.current is not None:
            self.post_message(self.Opened(self.table.current.id))

    def action_select_run(self) -> None:
        self.table.toggle()
        self._draw_selection()

    def action_select_all(self) -> None:
        self.table.select_all()
        self._draw_selection()
        if len(self.table.selected) == MOST_SELECTED < len(self.table.runs):
            self.message = f"{MOST_SELECTED} runs are selected, as many as there are colours"
            self.show_footer()

    def action_deselect(self) -> None:
        self.table.clear_selection()
        self._draw_selection()

    def action_filter_runs(self) -> None:
        self.edit_filter(self.runs, "filter such as state:failed config.lr>=1e-3")

    def action_filter(self) -> None:
        self.edit_filter(self.metrics)

    def action_clear(self) -> None:
        (self.runs if self.runs.has_focus else self.metrics).set_filter("")

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen("Keys of the list of runs", RUNS))
