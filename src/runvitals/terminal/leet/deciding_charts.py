"""The charts of the series that decided a finding, at its time, in place of all charts of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runvitals.findings.finding import Finding
from runvitals.terminal.leet.chart_grid import ChartGrid
from runvitals.terminal.leet.findings_pane import node_filter, pattern_of, time_range
from runvitals.terminal.leet.line_filter import LineFilter

if TYPE_CHECKING:
    from runvitals.terminal.leet.run_screen import RunScreen

_MOST_ROWS = 5


class _Before(NamedTuple):
    """What the user had chosen before."""

    only: LineFilter
    span: float | None
    grids: tuple[tuple[ChartGrid, dict[str, object], bool], ...]


class DecidingCharts:
    """Shows the charts of findings on the screen of a run, and gives it back as it was.

    Args:
        screen: of the run.

    Attributes:
        hint: the keys that apply to them; "" while they are not shown.
    """

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._before: _Before | None = None
        self.hint = ""

    def show(self, finding: Finding) -> None:
        """Show the charts of the series that decided a finding, at its time."""
        screen = self._screen
        system, run = screen.system, screen.data.run
        both = (system, screen.metrics)
        if self._before is None:
            grids = tuple((grid, grid.state(), grid.has_class("hidden")) for grid in both)
            self._before = _Before(screen.data.only, system.window.span, grids)
        screen.data.only = LineFilter.parse(node_filter(finding, 0 if run is None else len(run.hosts)))
        for grid in both:
            grid.is_glob = False
            grid.set_filter(pattern_of(finding))
        screen.redraw_charts()
        system.window.show(*time_range(finding, *screen.data.time_range()))
        for grid in both:
            grid.set_class(not grid.charts, "hidden")
            grid.set_size(1, min(max(len(grid.charts), 1), _MOST_ROWS))
        (system if system.charts else screen.metrics).focus()
        self.hint = f" charts of {finding.id} at its time · e next finding · esc back"

    def leave(self) -> bool:
        """Show what was shown before; return whether there was anything to leave."""
        before, self._before = self._before, None
        if before is None:
            return False
        screen = self._screen
        screen.data.only = before.only
        self.hint = ""
        screen.system.window.show_all()
        screen.system.window.span = before.span
        for grid, state, was_hidden in before.grids:
            grid.restore(state)
            grid.set_class(was_hidden, "hidden")
        screen.redraw_charts()
        return True
