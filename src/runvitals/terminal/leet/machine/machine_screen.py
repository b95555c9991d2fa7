"""The screen of this machine: meters, charts and processes, without a run; `runvitals top`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.chart_grid import ChartGrid, ChartValues
from runvitals.terminal.leet.chart_screen import ChartScreen
from runvitals.terminal.leet.chart_view import ChartLine
from runvitals.terminal.leet.charts import Chart, line_names
from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.filtered_screen import reason
from runvitals.terminal.leet.keys import MACHINE, bindings
from runvitals.terminal.leet.machine.machine_data import MachineData
from runvitals.terminal.leet.machine.meters import meters
from runvitals.terminal.leet.machine.process_table import ProcessTable
from runvitals.terminal.leet.machine.processes_pane import ProcessesPane
from runvitals.terminal.leet.pane_borders import Border
from runvitals.terminal.leet.program import LeetProgram
from runvitals.terminal.leet.question_screen import QuestionScreen
from runvitals.terminal.leet.text_pane import TextPane
from runvitals.terminal.leet.x_window import XWindow
from runvitals.terminal.top.processes import ProcessLine, kill

_NARROW = 100
_FIRST_S = 0.3
"""Seconds between the first two samples: CPU utilisation needs two."""
_WINDOW_MS = 300_000.0


# The order of charts, by the first word of their keys. Metrics of a run's processes come last: here they are
# those of this program.
_SUBJECTS = ("gpu", "tpu", "trn", "ipu", "cpu", "memory", "swap", "network", "disk")


def _rank(chart: Chart) -> int:
    subject = chart.lines[0].key.partition(".")[0].partition("_")[0]
    return _SUBJECTS.index(subject) if subject in _SUBJECTS else len(_SUBJECTS) + (subject == "proc")


class MachineScreen(ChartScreen):
    """This machine.

    Args:
        data: samples it.
        interval_s: seconds between two samples.
        readonly: whether processes cannot be killed.
    """

    DEFAULT_CSS = """
    MachineScreen #meters { width: 46; }
    MachineScreen #right { width: 1fr; }
    MachineScreen #charts { height: 3fr; }
    MachineScreen #processes { height: 2fr; min-height: 6; }
    MachineScreen.narrow #meters { width: 1fr; height: 1fr; }
    MachineScreen.narrow #right { width: 1fr; height: 2fr; }
    MachineScreen.narrow #machine { layout: vertical; }
    MachineScreen.narrow #charts { display: none; }
    MachineScreen.full #meters, MachineScreen.full #processes { display: none; }
    MachineScreen.full #charts { display: block; height: 1fr; }
    """
    HINT = " h help · f filter · t sort · T tree · k end · tab charts · q quit"
    KEYS = MACHINE
    HELP = "Keys of this machine"
    BINDINGS = bindings(MACHINE)

    def __init__(self, data: MachineData, interval_s: float, readonly: bool) -> None:
        super().__init__()
        self.data = data
        self.on_time = True
        self._interval_s = interval_s
        self._readonly = readonly
        self.table = ProcessTable()
        self.meters = TextPane("Meters", id="meters")
        self.metrics = ChartGrid("Charts", (3, 2), self._read, XWindow(_WINDOW_MS), id="charts")
        self.metrics.usually_on_time = True
        self.processes = ProcessesPane(self.table, id="processes")

    def compose(self) -> ComposeResult:
        """Yield meters, charts and processes."""
        yield self.header
        with Horizontal(id="machine"):
            yield self.meters
            with Vertical(id="right"):
                yield self.metrics
                yield self.processes
        yield self.footer
        yield self.filter

    def on_mount(self) -> None:
        """Start to sample the machine."""
        self.processes.focus()
        self.run_worker(self._follow(), exclusive=True)

    def on_unmount(self) -> None:
        """Close the sources."""
        self.data.close()

    def on_resize(self, event: events.Resize) -> None:
        """Show only meters and processes in a narrow terminal."""
        is_narrow = event.size.width < _NARROW
        self.set_class(is_narrow, "narrow")
        sides = (Border(self.meters, "right"), Border(self.processes, "top"))
        self.borders.set_borders(() if is_narrow else sides)
        self.call_after_refresh(self._show_header)
        self.call_after_refresh(self.show_footer)

    async def _follow(self) -> None:
        wait_s = min(_FIRST_S, self._interval_s)
        while True:
            await asyncio.to_thread(self.data.poll)
            self._update()
            await asyncio.sleep(wait_s)
            wait_s = self._interval_s

    def _update(self) -> None:
        self.table.set_processes(self.data.processes, self.data.gpu_use)
        self.processes.redraw()
        vitals = self.data.vitals
        failures: list[Row] = [
            [(f"{inert(name)}: {inert(why)}", "warn")] for name, why in list(vitals.failures.items())
        ]
        self.meters.set_rows([*meters(vitals, max(self.meters.size.width, 20)), *failures])
        self.metrics.set_charts(sorted(self.data.charts(), key=_rank))
        self._show_header()

    def _show_header(self) -> None:
        up_s = self.data.vitals.metrics.get("system.uptime")
        up = "" if up_s is None else f" · up {axes.elapsed(up_s * 1000.0)}"
        readonly = " · read-only" if self._readonly else ""
        self.header.show([[(f" {inert(self.data.host)} ", "title"), (f"{up}{readonly}", "dim")]])

    def _read(self, charts: Sequence[Chart]) -> ChartValues:
        series = self.data.series([line for chart in charts for line in chart.lines])
        lines = [
            [
                ChartLine(name, series[line], colour)
                for colour, (line, name) in enumerate(zip(chart.lines, line_names(chart), strict=True))
                if line in series
            ]
            for chart in charts
        ]
        extent = (self.data.started_ms, self.data.end_ms)
        return ChartValues(lines, extent, True, self.data.started_ms, grows=True)

    # -- keys

    def action_sort(self) -> None:
        """Sort the processes by the next column."""
        self.table.next_order()
        self.processes.redraw()

    def action_tree(self) -> None:
        """Show the processes as a tree, or as a list."""
        self.table.toggle_tree()
        self.processes.redraw()

    def action_filter_processes(self) -> None:
        """Edit the filter of processes."""
        self.edit_filter(self.processes)

    def action_filter(self) -> None:
        """Edit the filter of charts."""
        self.edit_filter(self.metrics)

    def action_clear(self) -> None:
        """Clear the filter of charts."""
        self.metrics.set_filter("")

    def action_clear_processes(self) -> None:
        """Clear the filter of processes."""
        self.processes.set_filter("")

    def action_meters(self) -> None:
        """Show or hide the meters."""
        self.meters.toggle_class("hidden")
        if self.meters.has_class("hidden") and self.meters.has_focus:
            self.processes.focus()

    def press_digit(self, digit: int) -> None:
        """Give all panes their usual sizes if the digit is 0."""
        if digit == 0:
            self.borders.reset()
            self.metrics.set_size()

    def action_end(self, name: str) -> None:
        """Send a signal to the process at the cursor if the user confirms it."""
        process = self.table.current
        if process is None:
            return
        if self._readonly:
            self.message = "processes cannot be ended: started with --readonly"
            self.show_footer()
            return
        number = signal.Signals[name]
        command = inert(process.command)[:60]
        question = f"Send {name} to {process.pid} ({command})?"

        def on_answer(yes: bool | None) -> None:
            if yes:
                self._kill(process, number)

        self.app.push_screen(QuestionScreen(question), on_answer)

    def _kill(self, process: ProcessLine, number: signal.Signals) -> None:
        try:
            kill(process, number)
            self.message = ""
        except OSError as error:
            self.message = f"{process.pid} was not ended: {reason(error)}"
        self.show_footer()

    def action_full(self) -> None:
        """Show the focused chart on the full screen, or all panes again."""
        if self.metrics.focused_chart is not None:
            self._set_full(not self.metrics.is_full)

    def _set_full(self, is_full: bool) -> None:
        self.metrics.set_full(is_full)
        self.set_class(is_full, "full")
        self.metrics.focus()

    def leave(self) -> None:
        """Leave the full screen, then the pane, then the screen."""
        if self.metrics.is_full:
            self._set_full(False)
        elif not self.processes.has_focus:
            self.processes.focus()
        elif len(self.app.screen_stack) > 2:
            self.dismiss()


class MachineApp(LeetProgram):
    """`runvitals top`.

    Args:
        data: samples the machine.
        interval_s: seconds between two samples.
        readonly: whether processes cannot be killed.
    """

    TITLE = "runvitals top"

    def __init__(
        self, data: MachineData, interval_s: float, readonly: bool, config: Config | None = None
    ) -> None:
        super().__init__(config)
        self._machine = MachineScreen(data, interval_s, readonly)

    def on_mount(self) -> None:
        """Show the screen of the machine."""
        self.push_screen(self._machine)
