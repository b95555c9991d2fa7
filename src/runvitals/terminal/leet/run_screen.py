"""One run: overview, metrics, system metrics and console logs."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from runvitals.base.terminal_text import inert
from runvitals.findings.finding import Findings
from runvitals.readers.journals.console import ConsoleText
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.chart_grid import ChartGrid, ChartValues
from runvitals.terminal.leet.charts import Chart
from runvitals.terminal.leet.config import Config, ProjectState
from runvitals.terminal.leet.console_lines import console_lines
from runvitals.terminal.leet.deciding_charts import DecidingCharts
from runvitals.terminal.leet.filtered_screen import READ_ERRORS
from runvitals.terminal.leet.finding_rows import verdict_row
from runvitals.terminal.leet.findings_pane import FindingsPane
from runvitals.terminal.leet.images.media_pane import MediaPane
from runvitals.terminal.leet.images.terminal_graphics import Graphics
from runvitals.terminal.leet.judging import Judging
from runvitals.terminal.leet.keys import RUN, bindings
from runvitals.terminal.leet.line_filter import GRAMMAR, LineFilter
from runvitals.terminal.leet.overview import ending, overview
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.pane_borders import Border, Edge
from runvitals.terminal.leet.replay import Replay
from runvitals.terminal.leet.rows_widget import RowsWidget
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.run_panes_screen import RunPanesScreen
from runvitals.terminal.leet.system_grid import SystemGrid
from runvitals.terminal.leet.text_pane import TextPane
from runvitals.terminal.leet.x_window import XWindow

NARROW = 90
"""Below this width the overview is hidden, and the system metrics are below the others."""
# A run that has ended may be resumed.
_ENDED_INTERVAL_S = 5.0


class RunScreen(RunPanesScreen):
    """The screen of one run, which follows it while it is open.

    Args:
        data: the run.
        state_of: returns what is kept of a project; None: nothing is kept.
        interval_s: seconds between two reads.
        replay: shows the run from its start on.
        graphics: the way to show images.
    """

    DEFAULT_CSS = """
    RunScreen #overview { width: 32; }
    RunScreen #metrics { width: 3fr; }
    RunScreen #system { width: 2fr; }
    RunScreen #console { height: 20%; min-height: 4; }
    RunScreen #media { height: 40%; min-height: 6; }
    RunScreen #findings { height: 50%; min-height: 6; }
    RunScreen #verdict { height: 1; }
    RunScreen.narrow #charts { layout: vertical; }
    RunScreen.narrow #metrics, RunScreen.narrow #system { width: 1fr; height: 1fr; }
    RunScreen.narrow #overview { width: 24; }
    RunScreen.full #body > *, RunScreen.full #charts > *, RunScreen.full #console, RunScreen.full #media,
    RunScreen.full #findings { display: none; }
    RunScreen.full #charts, RunScreen.full #charts > .full, RunScreen.full #media.full {
        display: block; width: 1fr; height: 1fr;
    }
    RunScreen.media-full #body { display: none; }
    """

    class MachineWanted(Message):
        """The user wants to see this machine."""

    HINT = " h help · : commands · / filter · \\ system filter · enter full screen · esc runs · q quit"
    KEYS = RUN
    HELP = "Keys"
    BINDINGS = bindings(RUN)

    def __init__(
        self,
        data: RunData,
        state_of: Callable[[str], ProjectState] | None = None,
        interval_s: float = 1.0,
        replay: Replay | None = None,
        graphics: Graphics = "blocks",
    ) -> None:
        super().__init__(graphics)
        self.data = data
        self.replay = replay
        self._state_of = state_of
        self._lines_filter = LinesPane(data, self.redraw_charts)
        self._interval_s = interval_s
        self._pieces: list[ConsoleText] = []
        self._printed_ms: list[float] = []
        self._wake = asyncio.Event()
        self._is_loading = True
        self._judging = Judging(data, self.report, self._show_findings)
        self._deciding = DecidingCharts(self)

    def compose(self) -> ComposeResult:
        """Yield the panes; images are hidden at first."""
        self.overview = TextPane("Overview", id="overview")
        self.metrics = ChartGrid("Metrics", (4, 3), self._read_metrics, XWindow(), id="metrics")
        self.system = SystemGrid((2, 6), lambda: self.data, self._read_missing, id="system")
        self.console = TextPane("Console", follows=True, id="console")
        self.media = MediaPane(self.data.source, self._graphics, id="media")
        self.media.add_class("hidden")
        self.verdict = RowsWidget(id="verdict")
        self.findings = FindingsPane(id="findings")
        self.findings.add_class("hidden")
        self.verdict.set_class(self.replay is not None, "hidden")
        yield self.header
        yield self.verdict
        with Horizontal(id="body"):
            yield self.overview
            with Horizontal(id="charts"):
                yield self.metrics
                yield self.system
        yield self.findings
        yield self.media
        yield self.console
        yield self.footer
        yield self.filter

    def on_mount(self) -> None:
        """Apply the configuration, and start to follow the run."""
        self.apply_config(self.config)
        self.on_time = self.config["x_axis"] == "time"
        self._set_borders()
        self.metrics.focus()
        self.run_worker(self._follow(), exclusive=True)

    def on_unmount(self) -> None:
        """Save what the user chose, and close the run."""
        self._keep()
        self.data.source.close()

    def apply_config(self, config: Config) -> None:
        """Use changed settings."""
        super().apply_config(config)
        for grid, name in ((self.metrics, "metrics"), (self.system, "system")):
            grid.set_usual_size(config[f"{name}_columns"], config[f"{name}_rows"])
            grid.set_guides(config["guides"])
        if not self.system.window.is_frozen and self.system.window.span is not None:
            self.system.window.span = config["tail_minutes"] * 60_000.0

    def too_large(self) -> Sequence[RowsWidget]:
        """Return the overview while the terminal is too narrow for it."""
        return [self.overview] if self.has_class("narrow") else []

    def panes(self) -> dict[str, RowsWidget]:
        """Return the panes whose visibility is saved, by name."""
        names = {"metrics": self.metrics, "system": self.system, "overview": self.overview}
        return {**names, "console": self.console, "media": self.media}

    def _keep(self) -> None:
        """Save what the user chose, for the next run of the project."""
        self._deciding.leave()
        if self._state_of is None or self.data.run is None:
            return
        self._state_of(self.data.run.project).write({**self.state(), "lines": self.data.only.text})

    def _restore(self) -> None:
        """Choose what was kept again."""
        if self._state_of is None or self.data.run is None:
            return
        state = self._state_of(self.data.run.project).read()
        self.restore(state)
        with suppress(ValueError):
            self.data.only = LineFilter.parse(str(state.get("lines", "")))

    def on_resize(self, event: events.Resize) -> None:
        """Hide the overview, and put system metrics below the others, in a narrow terminal."""
        is_narrow = event.size.width < NARROW
        if is_narrow != self.has_class("narrow") or self.overview.size.width == 0:
            self.set_class(is_narrow, "narrow")
            self.overview.set_class(is_narrow, "hidden")
            self._set_borders()
        self.call_after_refresh(self._show_header)
        self.call_after_refresh(self._show_verdict)
        self.call_after_refresh(self.show_footer)

    def _set_borders(self) -> None:
        of_system: Edge = "top" if self.has_class("narrow") else "left"
        of_others = (Border(self.overview, "right"), Border(self.media, "top"), Border(self.console, "top"))
        self.borders.set_borders([Border(self.system, of_system), *of_others])

    # -- reading

    async def _follow(self) -> None:
        """Read what is new, and draw it."""
        is_first = True
        while True:
            try:
                is_new = await asyncio.to_thread(self.data.poll)
            except READ_ERRORS as error:
                self.report("the run", error)
            else:
                self.report("the run", None)
                if is_first:
                    self._restore()
                    is_first = False
                if self._is_loading and self.data.progress == 1.0:
                    self._begin()
                if not (self._is_loading and self.replay) and (self._has_moved() or is_new):
                    self._update()
                self._show_header()
                self._judge_if_due()
            self._wake.clear()
            if not self.data.source.wants_more():
                is_moving = self.data.is_running or self.replay is not None
                interval_s = self._interval_s if is_moving else _ENDED_INTERVAL_S
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), interval_s)

    def _begin(self) -> None:
        """Start the replay, or show all of a run that has ended, once everything was read."""
        self._is_loading = False
        if self.replay is not None:
            self.replay.begin(*self.data.time_range())
        elif not self.data.is_running:
            self.system.window.show_all()

    def _has_moved(self) -> bool:
        """Return whether the replay is at another time than at the last call."""
        if self.replay is None:
            return False
        self.replay.set_end(self.data.source.end_ms())
        before, self.data.until_ms = self.data.until_ms, self.replay.position()
        return before != self.data.until_ms

    def _update(self) -> None:
        """Draw what was read."""
        assert self.data.run is not None
        self.redraw_charts()
        pieces = self.data.console()
        self.overview.set_rows(overview(self.data.run, pieces))
        self.media.update()
        if pieces != self._pieces:
            self._pieces = pieces
            lines = console_lines(pieces)
            self._printed_ms = [line.time_ms for line in lines]
            self.console.set_rows([[(line.text, "")] for line in lines])
            self._mark_console()

    def redraw_charts(self) -> None:
        """Show which charts and lines there are now."""
        self.metrics.set_charts(self.data.metric_charts())
        self.system.set_charts(self.data.system_charts())
        self._show_header()

    def _read_metrics(self, charts: Sequence[Chart]) -> ChartValues:
        lines = self.data.logged_lines(charts, self.on_time)
        self._read_missing()
        return ChartValues(
            lines, None, self.on_time, self._start if self.on_time else 0.0, self.data.is_running
        )

    def _read_missing(self) -> None:
        """Read at once what a remote source does not have yet."""
        if self.data.source.wants_more():
            self._wake.set()

    @property
    def _start(self) -> float:
        return 0.0 if self.data.run is None else float(self.data.run.started_ms)

    # -- findings

    def _judge_if_due(self) -> None:
        """Have the run judged beside the screen; a replay shows what was known then, and has no verdict."""
        if not self._is_loading and self.replay is None and self._judging.begin():
            self.run_worker(self._judging.judge(), group="findings")

    def _show_findings(self, findings: Findings, now_ms: float) -> None:
        self.findings.set_findings(findings, now_ms)
        self._show_verdict()

    def _show_verdict(self) -> None:
        findings = self.findings.findings
        row: Row = [(" judging the run …", "dim")]
        self.verdict.show([row if findings is None else verdict_row(findings, self.size.width)])

    def action_findings(self) -> None:
        """Show or hide the findings."""
        self.press_digit(5)

    @property
    def hint(self) -> str:
        """The keys of the charts of a finding while they are shown."""
        return self._deciding.hint or self.HINT

    def action_deciding(self) -> None:
        """Show the charts that decided a finding, at its time; again: of the next."""
        finding = self.findings.next_finding()
        if finding is None:
            self.message = "nothing was found that charts would show"
        else:
            self._deciding.show(finding)
        self.show_footer()

    # -- the lines above and below

    def _show_header(self) -> None:
        run = self.data.run
        if run is None:
            self.header.show([[("reading the run …", "dim")]])
            return
        style = "good" if run.state == "running" else "dim" if run.state == "finished" else "bad"
        state = ending(run)
        if self.data.progress < 1.0:
            state, style = f"reading {self.data.progress:.0%}", "dim"
        where, took = f"{inert(run.project)} · {inert(run.name)}", axes.elapsed(run.duration_ms)
        if self.replay is not None and not self._is_loading:
            self.header.show([[(f" {where} ", "title"), *self.replay.row(), (f"  {ending(run)}", "dim")]])
            return
        only = f" · {inert(self.data.only.text)}" if self.data.only.text else ""
        self.header.show([[(f" {where} ", "title"), (f" {state} ", style), (f" {took}{only}", "dim")]])

    # -- keys

    def press_digit(self, digit: int) -> None:
        """Show or hide a pane; 0 gives all their usual sizes."""
        if digit == 0:
            self.reset_sizes()
        panes = dict[int, RowsWidget](
            enumerate((self.metrics, self.system, self.media, self.console, self.findings), 1)
        )
        if digit in panes:
            self._toggle(panes[digit])
            if digit in (3, 5) and not panes[digit].has_class("hidden"):
                panes[digit].focus()

    def action_overview(self) -> None:
        """Show or hide the overview."""
        self._toggle(self.overview)

    def _toggle(self, pane: RowsWidget) -> None:
        pane.toggle_class("hidden")
        if pane.has_class("hidden") and pane.has_focus:
            if pane is self.metrics:
                self.focus_next()
            else:
                self.metrics.focus()

    def action_full(self) -> None:
        """Show the focused chart or image on the full screen, or all panes again."""
        if isinstance(self.pane, GridPane):
            self.toggle_full(self.pane)

    def leave(self) -> None:
        """Leave the full screen, then the charts of a finding, then the pane, then the run."""
        if self.leave_full():
            return
        if self._deciding.leave():
            self.findings.begin_again()
            self.show_footer()
            return
        if not self.metrics.has_focus and not self.metrics.has_class("hidden"):
            self.metrics.focus()
        else:
            self.dismiss()

    def action_inspect(self) -> None:
        """Show the records of the run."""
        reader = self.data.source.records()
        if reader is None:
            self.message = "a server keeps no records of the journal; inspect the run where it was recorded"
            self.show_footer()
            return
        from runvitals.terminal.leet.inspect_screen import InspectScreen
        from runvitals.terminal.leet.record_log import RecordLog

        title = "" if self.data.run is None else self.data.run.name
        self.app.push_screen(InspectScreen(title, RecordLog(reader), self.data.is_running, self._interval_s))

    def action_filter_lines(self) -> None:
        """Edit the filter of nodes, ranks and devices."""
        self.edit_filter(self._lines_filter, GRAMMAR)

    # -- crosshair and console

    def link_console(self) -> None:
        """Link console and crosshair, or unlink them; linked, each shows the time of the other."""
        self.console.marks = not self.console.marks
        is_linked = self.console.marks
        self.message = (
            "linked: the console marks the time of the crosshair, and moves it" if is_linked else ""
        )
        self.show_footer()
        if not is_linked:
            self.console.mark(None)
        elif self.console.has_focus and self.system.cross is None:
            self.console.move(0, -1)  # the last line
        else:
            self._mark_console()

    def on_chart_grid_cross_moved(self, event: ChartGrid.CrossMoved) -> None:
        """Move the crosshair of both grids and the mark in the console to the same time."""
        super().on_chart_grid_cross_moved(event)
        chart = self.metrics.focused_chart
        if event.x is not None and chart is not None and not (self.metrics.on_time or event.axis):
            if event.grid is self.metrics:
                self._put_cross(self.system, self.data.time_of_step(chart.title, event.x))
            else:
                self._put_cross(self.metrics, self.data.step_at(chart.title, event.x))
        self._mark_console()

    def _put_cross(self, grid: ChartGrid, x: float | None) -> None:
        grid.cross, grid.cross_axis = x, ""
        grid.redraw()

    def _mark_console(self) -> None:
        """Mark the last line before the crosshair, if they are linked."""
        if not self.console.marks:
            return
        at_ms, marked = self.system.cross, self.console.marked
        if marked is None or self._printed_ms[marked : marked + 1] != [at_ms]:
            index = None if at_ms is None else bisect_right(self._printed_ms, at_ms) - 1
            self.console.mark(None if index is None or index < 0 else index)

    def on_text_pane_marked(self, event: TextPane.Marked) -> None:
        """Move the crosshair to the time of a line."""
        at_ms = self._printed_ms[event.index]
        self._put_cross(self.system, at_ms)
        chart = self.metrics.focused_chart
        if self.metrics.on_time:
            self._put_cross(self.metrics, at_ms)
        elif chart is not None:
            self._put_cross(self.metrics, self.data.step_at(chart.title, at_ms))

    # -- replay

    def _move_replay(self, move: Callable[[Replay], None]) -> None:
        """Change the replay, and show where it is then."""
        if self.replay is None:
            self.message = "this is not a replay; start one with runvitals leet RUN --replay 10x"
            self.show_footer()
            return
        move(self.replay)
        if self._has_moved():
            self._update()
        self._show_header()

    def action_pause(self) -> None:
        """Pause the replay, or continue it."""
        self._move_replay(Replay.toggle_pause)

    def action_seek(self, share: float) -> None:
        """Move the replay by a share of the run."""
        self._move_replay(lambda replay: replay.seek(share))

    def action_speed(self, by: int) -> None:
        """Replay faster (1) or slower (-1)."""
        self._move_replay(lambda replay: replay.change_speed(by))

    def action_machine(self) -> None:
        """Ask the app to show this machine."""
        self.post_message(self.MachineWanted())


class LinesPane:
    """The filter of nodes, ranks and devices, as if it were a pane.

    Args:
        data: the run whose lines it filters.
        redraw: shows them.
    """

    title = "Lines"

    def __init__(self, data: RunData, redraw: Callable[[], None]) -> None:
        self._data = data
        self._redraw = redraw

    @property
    def pattern(self) -> str:
        """The text of the filter."""
        return self._data.only.text

    def set_filter(self, pattern: str) -> None:
        """Show only some nodes, ranks and devices; raise ValueError if it is no filter."""
        self._data.only = LineFilter.parse(pattern)
        self._redraw()
