"""The base of screens with charts: keys about charts, and the saved layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runvitals.terminal.leet.chart_grid import ChartGrid
from runvitals.terminal.leet.filtered_screen import FilteredScreen, Pane
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.rows_widget import RowsWidget


class ChartScreen(FilteredScreen):
    """A screen with a grid of metrics."""

    metrics: ChartGrid

    def __init__(self) -> None:
        super().__init__()
        self.on_time = False
        self._choosing = ""
        self._kept_hidden: set[str] = set()

    def panes(self) -> dict[str, RowsWidget]:
        """Return the panes whose state is kept, by the name under which it is."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the layout that the user chose, for JSON: axis, sizes and visibility of panes, grids."""
        panes = self.panes()
        grids = {name: pane.state() for name, pane in panes.items() if isinstance(pane, ChartGrid)}
        too_large = self.too_large()
        hidden = [
            name
            for name, pane in panes.items()
            if (name in self._kept_hidden if pane in too_large else pane.has_class("hidden"))
        ]
        return {**grids, "on_time": self.on_time, "sizes": self.borders.state(), "hidden": hidden}

    def too_large(self) -> Sequence[RowsWidget]:
        """Return panes hidden because the terminal is small; their saved visibility does not change."""
        return ()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Apply a saved layout; invalid parts are ignored."""
        self.on_time = bool(state.get("on_time", self.on_time))
        if isinstance(state.get("sizes"), dict):
            self.borders.restore(state["sizes"])
        hidden, too_large = state.get("hidden"), self.too_large()
        if isinstance(hidden, list):
            self._kept_hidden = set(map(str, hidden))
        for name, pane in self.panes().items():
            if isinstance(pane, ChartGrid) and isinstance(state.get(name), dict):
                pane.restore(state[name])
            if isinstance(hidden, list) and pane not in too_large:
                pane.set_class(name in hidden, "hidden")

    @property
    def default_pane(self) -> Pane:
        """The metrics."""
        return self.metrics

    @property
    def grid(self) -> ChartGrid:
        """The grid that keys about charts apply to."""
        return self.metrics

    def action_mode(self) -> None:
        """Draw the focused chart in the next mode: lines, logarithmic, heatmap."""
        self.grid.next_mode()

    def action_guides(self) -> None:
        """Show the next guides: off, dots, lines."""
        self.grid.next_guides()

    def action_x_axis(self) -> None:
        """Draw metrics over time, or over steps."""
        self.on_time = not self.on_time
        self.metrics.cross = None
        self.metrics.follow(everything=True)

    def action_zoom(self, by: int) -> None:
        """Show less (-1) or more (1) of the x-axis."""
        self.grid.zoom(by)

    def action_pan(self, share: float) -> None:
        """Move along the x-axis by a share of what is shown."""
        self.grid.pan(share)

    def action_follow(self, everything: bool) -> None:
        """Show the newest part of the x-axis, or everything."""
        self.grid.follow(everything)

    def action_cross(self, columns: int) -> None:
        """Move the crosshair by columns of the plot."""
        self.grid.move_cross(columns)

    def action_no_cross(self) -> None:
        """Remove the crosshair."""
        self.grid.post_message(ChartGrid.CrossMoved(self.grid, None))

    def on_chart_grid_cross_moved(self, event: ChartGrid.CrossMoved) -> None:
        """Move the crosshair of all grids on the same kind of axis."""
        for grid in self.query(ChartGrid):
            if grid.on_time == event.grid.on_time or event.x is None:
                grid.cross, grid.cross_axis = event.x, event.axis
                grid.redraw()

    def action_choose(self, dimension: str) -> None:
        """Wait for a digit: the number of columns or rows."""
        self._choosing = dimension
        self.message = f"{dimension}: press 1 to 9"
        self.show_footer()

    def action_digit(self, digit: int) -> None:
        """Set the number of columns or rows if a key before asked for it, else press the digit."""
        dimension, self._choosing, self.message = self._choosing, "", ""
        self.show_footer()
        if dimension and digit:
            (self.pane if isinstance(self.pane, GridPane) else self.grid).set_size(**{dimension: digit})
        else:
            self.press_digit(digit)

    def press_digit(self, digit: int) -> None:
        """React to a digit that no key before it waited for."""

    def action_back(self) -> None:
        """Stop waiting for a digit, and go back."""
        self._choosing = ""
        super().action_back()
