"""The list of runs, the metrics of the selected ones, and the facts of the run at the cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from textual import events, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.chart_grid import ChartGrid, ChartValues
from runvitals.terminal.leet.charts import Chart
from runvitals.terminal.leet.config import ProjectState
from runvitals.terminal.leet.console_lines import console_lines
from runvitals.terminal.leet.current_run import CurrentRun
from runvitals.terminal.leet.filtered_screen import READ_ERRORS
from runvitals.terminal.leet.images.media_pane import MediaPane
from runvitals.terminal.leet.images.terminal_graphics import Graphics
from runvitals.terminal.leet.keys import RUNS, bindings
from runvitals.terminal.leet.overlay import RunOverlay
from runvitals.terminal.leet.overview import overview
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.pane_borders import Border
from runvitals.terminal.leet.question_screen import QuestionScreen
from runvitals.terminal.leet.rows_widget import RowsWidget
from runvitals.terminal.leet.run_panes_screen import RunPanesScreen
from runvitals.terminal.leet.run_table import MAX_SELECTED, ListedRuns
from runvitals.terminal.leet.runs_pane import RunsPane
from runvitals.terminal.leet.sources.run_source import RunCatalogue, now_ms
from runvitals.terminal.leet.system_grid import SystemGrid
from runvitals.terminal.leet.text_pane import TextPane
from runvitals.terminal.leet.x_window import XWindow

LOW = 30
"""Below this height the overview is hidden."""
_REST_S = 0.15
"""How long the cursor must rest on a run before it is read."""


class RunsScreen(RunPanesScreen):
    """The screen of the runs.

    Args:
        catalogue: the collection of runs.
        interval_s: seconds between two reads.
        state: keeps what the user chose; None: nothing is kept.
        graphics: the way to show images.
    """

    DEFAULT_CSS = """
    RunsScreen #left { width: 2fr; }
    RunsScreen #runs { height: 1fr; }
    RunsScreen #right { width: 3fr; }
    RunsScreen #overview { height: 40%; min-height: 5; }
    RunsScreen #overview.alone { height: 1fr; }
    RunsScreen #metrics { height: 1fr; }
    RunsScreen #system { height: 40%; min-height: 6; }
    RunsScreen #media { height: 40%; min-height: 6; }
    RunsScreen #console { height: 25%; min-height: 4; }
    RunsScreen.full #left, RunsScreen.full #right > * { display: none; }
    RunsScreen.full #right > .full { display: block; height: 1fr; }
    """
    HINT = " h help · enter open · space select · f filter runs · / filter metrics · q quit"
    KEYS = RUNS
    HELP = "Keys of the list of runs"
    BINDINGS = bindings(RUNS)

    class Opened(Message):
        """The user opened a run."""

        def __init__(self, run_id: str) -> None:
            super().__init__()
            self.run_id = run_id

    class MachineWanted(Message):
        """The user wants to see this machine."""

    def __init__(
        self,
        catalogue: RunCatalogue,
        interval_s: float,
        state: ProjectState | None = None,
        graphics: Graphics = "blocks",
    ) -> None:
        super().__init__(graphics)
        self._state = state
        self._title = inert(catalogue.title)
        self._interval_s = interval_s
        self._overlay = RunOverlay(catalogue.open)
        self._current = CurrentRun(catalogue.open)
        self._shown_id = ""
        self._lists_everything = not catalogue.filters_itself
        self._wake = asyncio.Event()
        self.table = ListedRuns(catalogue)
        self.runs = RunsPane(self.table, id="runs")
        self.metrics = ChartGrid("Metrics of the selected runs", (3, 3), self._read, XWindow(), id="metrics")
        self.metrics.empty_text = "space selects a run"
        self.overview = TextPane("Overview", id="overview")
        self.system = SystemGrid((3, 2), lambda: self._current.data, self._read_missing, id="system")
        self.media = MediaPane(None, graphics, id="media")
        self.console = TextPane("Console", follows=True, id="console")

    def compose(self) -> ComposeResult:
        """Yield the panes; system metrics, images and console are hidden at first."""
        yield self.header
        with Horizontal():
            with Vertical(id="left") as self._left_column:
                yield self.runs
                yield self.overview
            with Vertical(id="right"):
                yield self.metrics
                yield self.system
                yield self.media
                yield self.console
        yield self.footer
        yield self.filter
        for pane in (self.system, self.media, self.console):
            pane.add_class("hidden")
        below = (Border(pane, "top") for pane in (self.overview, self.system, self.media, self.console))
        self._sides = [Border(self._left_column, "right"), *below]

    def on_mount(self) -> None:
        """Restore what the user chose before, and start to follow the list."""
        self.borders.set_borders(self._sides)
        self.apply_config(self.config)
        self._restore()
        (self.metrics if self.runs.has_class("hidden") else self.runs).focus()
        self.run_worker(self._follow(), exclusive=True, group="follow")

    def on_unmount(self) -> None:
        """Save what the user chose, and close all runs."""
        self._keep()
        self._overlay.select({})
        self._current.close()

    def on_resize(self, event: events.Resize) -> None:
        """Hide the overview in a low terminal."""
        is_low = event.size.height < LOW
        if is_low != self.has_class("low"):
            self.set_class(is_low, "low")
            self.overview.set_class(is_low, "hidden")
            self._fit_left()
        self.call_after_refresh(self.header.show, [[(f" {self._title}", "title")]])
        self.call_after_refresh(self.show_footer)

    async def _follow(self) -> None:
        is_first = True
        while True:
            if self.is_active:  # Textual calls the screen below the active one current too
                try:
                    self.table.set_runs(*await asyncio.to_thread(self.table.read, now_ms()))
                    if (is_first and self.table.selected) or self._overlay.run_ids - set(self.table.selected):
                        self._draw_selection()
                    is_first = False
                    is_new = await asyncio.to_thread(self._overlay.poll)
                except READ_ERRORS as error:
                    self.report("the list of runs", error)
                else:
                    self.report("the list of runs", None)
                    self.runs.redraw()
                    if is_new:
                        self.metrics.set_charts(self._overlay.charts())
                    await self._read_current()
            self._wake.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self.table.pause_s(self._interval_s))

    # -- what is kept

    def too_large(self) -> Sequence[RowsWidget]:
        """Return the overview while the terminal is too low for it."""
        return [self.overview] if self.has_class("low") else []

    def panes(self) -> dict[str, RowsWidget]:
        """Return the panes whose visibility is saved, by name."""
        names = {"runs": self.runs, "metrics": self.metrics, "system": self.system}
        return {**names, "overview": self.overview, "console": self.console, "media": self.media}

    def _keep(self) -> None:
        """Save what the user chose."""
        if self._state is not None:
            selected = {"selected": list(self.table.selected), "pinned": self.table.pinned}
            self._state.write({**self.state(), "filter": self.table.text, **selected})

    def _restore(self) -> None:
        """Choose what was kept again. What is invalid is left out."""
        state = {} if self._state is None else self._state.read()
        with suppress(ValueError):
            self.runs.set_filter(str(state.get("filter", "")))
        selected = state.get("selected")
        self.table.choose(selected if isinstance(selected, list) else [], state.get("pinned"))
        self.restore(state)
        self._fit_left()

    # -- the run at the cursor

    def on_runs_pane_moved(self) -> None:
        """Show the run at the cursor."""
        self._show_overview()
        self._read_moved()

    @work(exclusive=True, group="current")
    async def _read_moved(self) -> None:
        await asyncio.sleep(_REST_S)
        await self._read_current()

    async def _read_current(self) -> None:
        """Read the run at the cursor, if more of it is shown than the list knows."""
        run, (wants_overview, wants_rest) = self.table.current, self._visible_parts()
        if run is not None and (wants_rest or (wants_overview and not self._lists_everything)):
            try:
                await asyncio.to_thread(self._current.read, run.id)
            except READ_ERRORS as error:
                self.report("the run at the cursor", error)
                return
            self.report("the run at the cursor", None)
            data = self._current.data
            if data is not None and wants_rest:
                if run.id != self._shown_id:
                    self._shown_id = run.id
                    self.system.show_newest(data.is_running)
                self.system.set_charts(data.system_charts())
                self.console.set_rows([[(line.text, "")] for line in console_lines(data.console())])
                self.media.set_source(data.source)
                self.media.update()
        self._show_overview()

    def _visible_parts(self) -> tuple[bool, bool]:
        """Return whether the overview is shown, and whether system metrics, images or the console are."""
        others = (self.system, self.media, self.console)
        return not self.overview.has_class("hidden"), not all(pane.has_class("hidden") for pane in others)

    def _show_overview(self) -> None:
        run, data = self.table.current, self._current.data
        if data is not None and data.run is not None and run is not None and data.run.id == run.id:
            run = data.run
        self.overview.set_rows([] if run is None else overview(run))

    def _read_missing(self) -> None:
        """Read at once what a remote source does not have yet."""
        data = self._current.data
        if data is not None and data.source.wants_more():
            self._wake.set()

    def _read(self, charts: Sequence[Chart]) -> ChartValues:
        return ChartValues(self._overlay.lines(charts, self.on_time), None, self.on_time, 0.0)

    def _draw_selection(self) -> None:
        self.runs.redraw()
        pinned = self.table.pinned  # drawn last, over the others
        order = sorted(self.table.selected.items(), key=lambda entry: entry[0] == pinned)
        self._overlay.select(dict(order))
        self._read_selection()

    @work(exclusive=True, group="selection")
    async def _read_selection(self) -> None:
        try:
            await asyncio.to_thread(self._overlay.poll)
        except READ_ERRORS as error:
            self.report("a selected run", error)
        else:
            self.report("a selected run", None)
        self.metrics.set_charts(self._overlay.charts())

    # -- keys

    def press_digit(self, digit: int) -> None:
        """Show or hide a pane; 0 gives all their usual sizes."""
        panes: dict[int, RowsWidget] = {1: self.metrics, 2: self.system, 3: self.media, 4: self.console}
        if digit == 0:
            self.reset_sizes()
        elif digit in panes:
            self._toggle(panes[digit])
            if digit == 3 and not self.media.has_class("hidden"):
                self.media.focus()

    def action_runs(self) -> None:
        """Show or hide the list of runs."""
        self._toggle(self.runs)

    def action_overview(self) -> None:
        """Show or hide the overview."""
        self._toggle(self.overview)

    def _toggle(self, pane: RowsWidget) -> None:
        had_focus = pane.has_focus
        pane.toggle_class("hidden")
        self._fit_left()
        if pane.has_class("hidden") and had_focus:
            (self.metrics if self.runs.has_class("hidden") else self.runs).focus()
        self._read_moved()

    def _fit_left(self) -> None:
        """Hide the left side without panes; without the list, give the overview all of it."""
        lists, describes = (not pane.has_class("hidden") for pane in (self.runs, self.overview))
        self._left_column.set_class(not lists and not describes, "hidden")
        self.overview.set_class(not lists, "alone")

    def action_open(self) -> None:
        """Open the run at the cursor, or show the focused chart or image on the full screen."""
        if isinstance(self.pane, GridPane):
            self.toggle_full(self.pane)
        elif self.table.current is not None:
            self.post_message(self.Opened(self.table.current.id))

    def leave(self) -> None:
        """Leave the full screen, then the pane."""
        if not self.leave_full() and not self.runs.has_class("hidden"):
            self.runs.focus()

    def action_machine(self) -> None:
        """Ask the app to show this machine."""
        self.post_message(self.MachineWanted())

    def action_select_run(self) -> None:
        """Select the run at the cursor, or deselect it."""
        self.table.toggle()
        self._draw_selection()

    def action_pin(self) -> None:
        """Pin the run at the cursor, or unpin it."""
        self.table.toggle_pin()
        self._draw_selection()

    def action_select_all(self) -> None:
        """Select all runs that match if the user confirms it."""
        count = len(self.table.runs)
        many = f"{MAX_SELECTED} of the {count} runs, as many as there are colours"
        what = many if count > MAX_SELECTED else f"{count} runs"

        def on_answer(yes: bool | None) -> None:
            if yes:
                self.table.select_all()
                self._draw_selection()

        if count:
            self.app.push_screen(QuestionScreen(f"Select {what}?"), on_answer)

    def action_deselect(self) -> None:
        """Deselect all runs except the pinned one."""
        self.table.clear_selection()
        self._draw_selection()

    def action_filter_runs(self) -> None:
        """Edit the filter of runs."""
        self.edit_filter(self.runs, "filter such as state:failed config.lr>=1e-3")

    def action_clear_runs(self) -> None:
        """Clear the filter of runs."""
        self.runs.set_filter("")
