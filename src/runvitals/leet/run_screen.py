"""One run: overview, metrics, system metrics and console logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal

from runvitals.leet import axes
from runvitals.leet.chart_grid import ChartGrid, ChartValues
from runvitals.leet.chart_screen import ChartScreen
from runvitals.leet.charts import Chart
from runvitals.leet.console_lines import console_lines
from runvitals.leet.help_screen import HelpScreen
from runvitals.leet.keys import RUN
from runvitals.leet.overview import ending, overview
from runvitals.leet.rows_widget import RowsWidget
from runvitals.leet.run_data import RunData
from runvitals.leet.text_pane import TextPane
from runvitals.query.console import ConsoleText
from runvitals.terminal import inert

NARROW = 90
"""Below this width the overview is hidden, and the system metrics are below the others."""
_WINDOWS_MS = tuple(minutes * 60_000 for minutes in (1, 2, 5, 10, 30, 60, 180, 720))
_USUAL_WINDOW = 3
_WHOLE_RUN = len(_WINDOWS_MS)
# A run that has ended may be resumed.
_ENDED_INTERVAL_S = 5.0


class RunScreen(ChartScreen):
    """The screen of one run, which follows it while it is open.

    Args:
        data: the run.
        interval_s: between two looks at its journal.
    """

    DEFAULT_CSS = """
    RunScreen #overview { width: 32; }
    RunScreen #metrics { width: 3fr; }
    RunScreen #system { width: 2fr; }
    RunScreen #console { height: 20%; min-height: 4; }
    RunScreen.narrow #charts { layout: vertical; }
    RunScreen.narrow #metrics, RunScreen.narrow #system { width: 1fr; height: 1fr; }
    RunScreen.narrow #overview { width: 24; }
    RunScreen.full #body > *, RunScreen.full #charts > *, RunScreen.full #console { display: none; }
    RunScreen.full #charts, RunScreen.full #charts > .full { display: block; width: 1fr; height: 1fr; }
    """
    HINT = " h help · / filter · \\ system filter · enter full screen · esc runs · q quit"
    BINDINGS = [Binding(key.keys, key.action, key.text, show=False) for key in RUN]

    def __init__(self, data: RunData, interval_s: float = 1.0) -> None:
        super().__init__()
        self.data = data
        self._interval_s = interval_s
        self._window = _USUAL_WINDOW
        self._pieces: list[ConsoleText] = []

    def compose(self) -> ComposeResult:
        self.overview = TextPane("Overview", id="overview")
        self.metrics = ChartGrid("Metrics", (4, 3), self._read_metrics, id="metrics")
        self.system = ChartGrid("System", (2, 6), self._read_system, id="system")
        self.console = TextPane("Console", follows=True, id="console")
        yield self.header
        with Horizontal(id="body"):
            yield self.overview
            with Horizontal(id="charts"):
                yield self.metrics
                yield self.system
        yield self.console
        yield self.footer
        yield self.filter

    def on_mount(self) -> None:
        self.metrics.focus()
        self.run_worker(self._follow(), exclusive=True)

    def on_resize(self, event: events.Resize) -> None:
        is_narrow = event.size.width < NARROW
        if is_narrow != self.has_class("narrow") or self.overview.size.width == 0:
            self.set_class(is_narrow, "narrow")
            self.overview.set_class(is_narrow, "hidden")
        self.call_after_refresh(self._show_header)
        self.call_after_refresh(self.show_footer)

    # -- reading

    async def _follow(self) -> None:
        """Read what is appended to the journal, and draw it."""
        is_first = True
        while True:
            try:
                is_new = await asyncio.to_thread(self.data.poll)
            except OSError as error:
                self.message = f"the journal cannot be read: {error.strerror or error}"
                self.show_footer()
            else:
                if is_first and not self.data.is_running:
                    self._window = _WHOLE_RUN
                if is_new:
                    self._update()
                is_first = False
                self._show_header()
            await asyncio.sleep(self._interval_s if self.data.is_running else _ENDED_INTERVAL_S)

    def _update(self) -> None:
        """Draw what was read."""
        assert self.data.run is not None
        self._show_window()
        self.metrics.set_charts(self.data.metric_charts())
        self.system.set_charts(self.data.system_charts())
        self.overview.set_rows(overview(self.data.run))
        pieces = self.data.console()
        if pieces != self._pieces:
            self._pieces = pieces
            self.console.set_rows([[(line, "")] for line in console_lines(pieces)])

    def _read_metrics(self, charts: Sequence[Chart]) -> ChartValues:
        lines = self.data.logged_lines(charts, self.on_time)
        return ChartValues(lines, None, self.on_time, self._start if self.on_time else 0.0)

    def _read_system(self, charts: Sequence[Chart]) -> ChartValues:
        if not charts:
            return ChartValues([], None, True, 0.0)
        window = None if self._window == _WHOLE_RUN else _WINDOWS_MS[self._window]
        return ChartValues(self.data.system_lines(charts), self.data.time_range(window), True, self._start)

    @property
    def _start(self) -> float:
        return 0.0 if self.data.run is None else float(self.data.run.started_ms)

    # -- the lines above and below

    def _show_header(self) -> None:
        run = self.data.run
        if run is None:
            self.header.show([[("reading the journal …", "dim")]])
            return
        style = "good" if run.state == "running" else "dim" if run.state == "finished" else "bad"
        where, took = f"{inert(run.project)} · {inert(run.name)}", axes.elapsed(run.duration_ms)
        self.header.show([[(f" {where} ", "title"), (f" {ending(run)} ", style), (f" {took}", "dim")]])

    def _show_window(self) -> None:
        whole = self._window == _WHOLE_RUN
        self.system.note = "whole run" if whole else f"last {axes.elapsed(_WINDOWS_MS[self._window])}"

    # -- keys

    @property
    def grid(self) -> ChartGrid:
        """The grid that keys about charts apply to."""
        return self.system if self.system.has_focus else self.metrics

    def action_zoom(self, by: int) -> None:
        self._window = min(max(self._window + by, 0), _WHOLE_RUN)
        self._show_window()
        self.system.redraw()

    def on_chart_grid_zoomed(self, event: ChartGrid.Zoomed) -> None:
        if event.grid is self.system:
            self.action_zoom(event.by)

    def press_digit(self, digit: int) -> None:
        """Show or hide a pane; 0 shows all of them."""
        if digit == 0:
            for pane in (self.metrics, self.system, self.console, self.overview):
                pane.remove_class("hidden")
            self.metrics.set_size()
            self.system.set_size()
        panes: dict[int, RowsWidget] = {1: self.metrics, 2: self.system, 4: self.console}
        if digit in panes:
            self._toggle(panes[digit])

    def action_overview(self) -> None:
        self._toggle(self.overview)

    def _toggle(self, pane: RowsWidget) -> None:
        pane.toggle_class("hidden")
        if pane.has_class("hidden") and pane.has_focus:
            if pane is self.metrics:
                self.focus_next()
            else:
                self.metrics.focus()

    def action_full(self) -> None:
        if isinstance(self.pane, ChartGrid) and self.pane.focused_chart is not None:
            self._set_full(self.pane, not self.pane.is_full)

    def _set_full(self, grid: ChartGrid, is_full: bool) -> None:
        grid.is_full = is_full
        self.set_class(is_full, "full")
        grid.set_class(is_full, "full")
        grid.focus()
        self.call_after_refresh(grid.redraw)

    def leave(self) -> None:
        """Leave the full-screen chart, or the run."""
        full = [grid for grid in (self.metrics, self.system) if grid.is_full]
        if full:
            self._set_full(full[0], False)
        else:
            self.dismiss()

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen("Keys", RUN))

    # -- filters

    def action_filter(self) -> None:
        self.edit_filter(self.console if self.console.has_focus else self.metrics)

    def action_filter_system(self) -> None:
        self.edit_filter(self.system)

    def action_clear(self) -> None:
        (self.console if self.console.has_focus else self.metrics).set_filter("")

    def action_clear_system(self) -> None:
        self.system.set_filter("")
