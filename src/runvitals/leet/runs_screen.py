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
from runvitals.leet.filtered_screen import READ_ERRORS, reason
from runvitals.leet.keys import RUNS
from runvitals.leet.overlay import RunOverlay
from runvitals.leet.pane_borders import Border
from runvitals.leet.run_table import MOST_SELECTED, ListedRuns
from runvitals.leet.runs_pane import RunsPane
from runvitals.leet.sources.run_source import RunCatalogue, now_ms
from runvitals.leet.x_window import XWindow
from runvitals.terminal import inert


class RunsScreen(ChartScreen):
    """The screen of the runs.

    Args:
        catalogue: where the runs are.
        interval_s: between two looks at it.
    """

    DEFAULT_CSS = """
    RunsScreen #runs { width: 2fr; }
    RunsScreen #metrics { width: 3fr; }
    """
    HINT = " h help · enter open · space select · f filter runs · / filter metrics · q quit"
    KEYS = RUNS
    HELP = "Keys of the list of runs"
    BINDINGS = [Binding(key.keys, key.action, key.text, show=False) for key in RUNS]

    class Opened(Message):
        """The user opened a run."""

        def __init__(self, run_id: str) -> None:
            super().__init__()
            self.run_id = run_id

    class MachineWanted(Message):
        """The user wants to see this machine."""

    def __init__(self, catalogue: RunCatalogue, interval_s: float) -> None:
        super().__init__()
        self._title = inert(catalogue.title)
        self._interval_s = interval_s
        self._overlay = RunOverlay(catalogue.open)
        self.table = ListedRuns(catalogue)
        self.runs = RunsPane(self.table, id="runs")
        self.metrics = ChartGrid("Metrics of the selected runs", (3, 3), self._read, XWindow(), id="metrics")

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal():
            yield self.runs
            yield self.metrics
        yield self.footer
        yield self.filter

    def on_mount(self) -> None:
        self.borders.set_borders([Border(self.runs, "right")])
        self.runs.focus()
        self.run_worker(self._follow(), exclusive=True, group="follow")

    def on_unmount(self) -> None:
        self._overlay.select({})

    def on_resize(self) -> None:
        self.call_after_refresh(self.header.show, [[(f" {self._title}", "title")]])
        self.call_after_refresh(self.show_footer)

    async def _follow(self) -> None:
        while True:
            if self.is_active:  # Textual calls the screen below the active one current too
                try:
                    self.table.set_runs(*await asyncio.to_thread(self.table.read, now_ms()))
                    is_new = await asyncio.to_thread(self._overlay.poll)
                except READ_ERRORS as error:
                    self.message = f"the runs cannot be read: {reason(error)}"
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
        pinned = self.table.pinned  # drawn last, over the others
        order = sorted(self.table.selected.items(), key=lambda entry: entry[0] == pinned)
        self._overlay.select(dict(order))
        self.run_worker(self._read_selection(), exclusive=True, group="selection")

    async def _read_selection(self) -> None:
        try:
            await asyncio.to_thread(self._overlay.poll)
        except READ_ERRORS as error:
            self.message = f"a run cannot be read: {reason(error)}"
            self.show_footer()
        self.metrics.set_charts(self._overlay.charts())

    # -- keys

    def action_open(self) -> None:
        if self.metrics.has_focus or self.metrics.is_full:
            self._set_full(not self.metrics.is_full)
        elif self.table.current is not None:
            self.post_message(self.Opened(self.table.current.id))

    def _set_full(self, is_full: bool) -> None:
        if self.metrics.focused_chart is not None:
            self.metrics.is_full = is_full
            self.runs.set_class(is_full, "hidden")
            self.metrics.focus()
            self.call_after_refresh(self.metrics.redraw)

    def leave(self) -> None:
        """Leave the full-screen chart."""
        if self.metrics.is_full:
            self._set_full(False)

    def action_machine(self) -> None:
        self.post_message(self.MachineWanted())

    def action_select_run(self) -> None:
        self.table.toggle()
        self._draw_selection()

    def action_pin(self) -> None:
        self.table.toggle_pin()
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
