"""A grid of charts: one widget, which draws only the charts of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from textual import events
from textual.message import Message

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.axes import extent
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.chart_layout import ChartLayout
from runvitals.terminal.leet.chart_view import ChartLine, ChartStyle, Guides, draw
from runvitals.terminal.leet.charts import Chart, matching, metrics_of
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.x_window import XWindow

Mode = Literal["lines", "log", "heatmap"]
_MODES: tuple[Mode, ...] = ("lines", "log", "heatmap")
_GUIDES: tuple[Guides, ...] = ("off", "dots", "lines")
MAX_LINES = 8
"""A chart with more lines of each metric is a heatmap, until the user chooses otherwise."""
_ZOOM = 0.8


class ChartValues(NamedTuple):
    """The values of the charts of a page.

    Args:
        lines: the lines of each chart.
        extent: the x-range of all charts; None: each has that of its values.
        on_time: whether x is a time, not a step.
        x_start: the zero of the labels of the x-axis.
        grows: whether the run still adds values.
    """

    lines: list[list[ChartLine]]
    extent: tuple[float, float] | None
    on_time: bool
    x_start: float
    grows: bool = False


class ShownChart(NamedTuple):
    """The area of a chart in the grid, and its x-axis.

    The plot takes the columns from `plot_left` to `plot_left + plot_width`. `axis` is the logged metric on
    the x-axis, "" for steps and time.
    """

    chart: int
    axis: str
    left: int
    top: int
    width: int
    height: int
    plot_left: int
    plot_width: int
    x_range: tuple[float, float]
    extent: tuple[float, float]

    def x_at(self, column: int) -> float:
        """Return the x at a column of the grid, within the axis."""
        low, high = self.x_range
        share = (column - self.plot_left + 0.5) / self.plot_width
        return low + (high - low) * min(max(share, 0.0), 1.0)


class ChartGrid(GridPane):
    """A grid of charts with a filter.

    Args:
        title: shown in the first row.
        size: columns and rows.
        read: returns the values of charts.
        window: which part of the x-axis is shown.
    """

    takes_globs = True

    class CrossMoved(Message):
        """The user moved the crosshair of charts with this axis, or removed it (None)."""

        def __init__(self, grid: ChartGrid, x: float | None, axis: str = "") -> None:
            super().__init__()
            self.grid, self.x, self.axis = grid, x, axis

    def __init__(
        self,
        title: str,
        size: tuple[int, int],
        read: Callable[[Sequence[Chart]], ChartValues],
        window: XWindow,
        *,
        id: str,
    ) -> None:
        super().__init__(title, id=id)
        self.window = window
        self._own_windows: dict[str, XWindow] = {}  # of charts over a logged metric, by its name
        self.cross: float | None = None
        self.cross_axis = ""
        self.shown: list[ShownChart] = []
        self.on_time = False
        self.charts: list[Chart] = []
        self._all: Sequence[Chart] = ()
        self._usual_size = size
        self._layout = ChartLayout(*size)
        self._read = read
        self._drawn: dict[tuple[str, str], list[ChartLine]] = {}
        self.usually_on_time = False
        self.empty_text = "no values yet"
        self._is_wanted: Callable[[str], bool] | None = None
        self._modes: dict[tuple[str, str], Mode] = {}
        self._guides = 0

    # -- what is shown

    def set_charts(self, charts: Sequence[Chart]) -> None:
        """Set all charts, of which those that match the filter are shown, and draw them."""
        focused = self.focused_chart
        self._all = charts
        if self._is_wanted is None:
            self.charts = [chart for chart in charts if not chart.is_hidden]
        else:
            self.charts = matching(charts, self._is_wanted)
        self._layout.resize(len(self.charts))
        if focused is not None:  # new charts may have been sorted in before it
            indexes = [index for index, chart in enumerate(self.charts) if chart[:2] == focused[:2]]
            self._layout.focus = indexes[0] if indexes else 0
        self.redraw()

    def set_filter(self, pattern: str) -> None:
        """Show only charts whose title or keys match a regular expression or glob, or raise ValueError."""
        self._is_wanted = self.test_of(pattern)
        self.pattern = pattern
        self.set_charts(self._all)

    @property
    def focused_chart(self) -> Chart | None:
        """The chart in focus."""
        return self.charts[self._layout.focus] if self.charts else None

    # -- what keys and mouse do

    def move(self, right: int, down: int) -> None:
        """Move the focus to another chart."""
        self._layout.move(right + down if self.is_full else right, 0 if self.is_full else down)
        self.redraw()

    def turn(self, pages: int) -> None:
        """Show another page, or another chart if one is shown on the full screen."""
        if self.is_full:
            self._layout.move(pages, 0)
        else:
            self._layout.turn(pages)
        self.redraw()

    def to_end(self, last: bool) -> None:
        """Show the first or the last page."""
        self._layout.to_end(last)
        self.redraw()

    def next_mode(self) -> None:
        """Draw the focused chart otherwise: with lines, on a logarithmic axis, as a heatmap."""
        chart = self.focused_chart
        if chart is not None:
            now = self._mode(chart, self._drawn.get(chart[:2], ()))
            self._modes[chart[:2]] = _MODES[(_MODES.index(now) + 1) % len(_MODES)]
            self.redraw()

    def zoom(self, by: int) -> None:
        """Show less (-1) or more (1) of the x-axis."""
        if self.shown:
            chart = self._focused_area()
            self._window_of(chart.axis).step(by, chart.extent)
            self.redraw()

    def pan(self, share: float) -> None:
        """Move along the x-axis by a share of what is shown."""
        if self.shown:
            chart = self._focused_area()
            self._window_of(chart.axis).pan(share, chart.extent)
            self.redraw()

    def follow(self, everything: bool) -> None:
        """Show the newest part of the x-axis, or everything."""
        for window in (self.window, *self._own_windows.values()):
            if everything:
                window.show_all()
            else:
                window.follow()
        self.redraw()

    def _window_of(self, axis: str) -> XWindow:
        """Return the window of an axis: charts over one logged metric have a zoom of their own."""
        return self._own_windows.setdefault(axis, XWindow()) if axis else self.window

    def _axis_of(self, chart: Chart) -> str:
        return "" if self.on_time else chart.axis

    def move_cross(self, columns: int) -> None:
        """Move the crosshair of the focused chart; the first time it is at the end."""
        if self.shown:
            chart = self._focused_area()
            low, high = chart.x_range
            if self.cross is None or self.cross_axis != chart.axis:
                self.post_message(self.CrossMoved(self, high, chart.axis))
                return
            by = (high - low) / chart.plot_width * columns
            self.post_message(self.CrossMoved(self, min(max(self.cross + by, low), high), chart.axis))

    def _focused_area(self) -> ShownChart:
        focus = self._layout.focus
        return next((chart for chart in self.shown if chart.chart == focus), self.shown[0])

    def next_guides(self) -> None:
        """Change the guides of all charts."""
        self._guides = (self._guides + 1) % len(_GUIDES)
        self.redraw()

    def set_size(self, columns: int | None = None, rows: int | None = None) -> None:
        """Change the number of columns or rows; without any, both to the usual ones."""
        usual = self._usual_size if columns is rows is None else (self._layout.columns, self._layout.rows)
        self._layout.columns, self._layout.rows = columns or usual[0], rows or usual[1]
        self.redraw()

    def set_guides(self, name: str) -> None:
        """Set the guides of all charts."""
        self._guides = [str(guides) for guides in _GUIDES].index(name)

    def set_usual_size(self, columns: int, rows: int) -> None:
        """Set the numbers of columns and rows that a grid has without changes."""
        if (columns, rows) != self._usual_size:
            self._usual_size = (columns, rows)
            self._layout.columns, self._layout.rows = columns, rows

    def state(self) -> dict[str, Any]:
        """Return filter, size and modes that the user chose, for JSON."""
        layout = self._layout
        modes = [[*chart, mode] for chart, mode in self._modes.items()]
        filtering = {"filter": self.pattern, "glob": self.is_glob}
        return {**filtering, "columns": layout.columns, "rows": layout.rows, "modes": modes}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Apply a saved state; invalid parts are ignored."""
        self.is_glob = state.get("glob") is True
        with suppress(ValueError, TypeError):
            self.set_filter(str(state.get("filter", "")))
        for name in ("columns", "rows"):
            if state.get(name) in range(1, 10):
                setattr(self._layout, name, state[name])
        for entry in state.get("modes") or ():
            if isinstance(entry, list) and len(entry) == 3 and entry[2] in _MODES:
                self._modes[str(entry[0]), str(entry[1])] = entry[2]

    # -- drawing

    def redraw(self) -> None:
        """Read the values of the charts that are shown, and draw them."""
        width, height = self.size
        if width < 4 or height < 4:
            return
        self._layout.fit(width, height - 1)
        if self.is_full and self.charts:
            indexes = [self._layout.focus]
            areas = [(0, 0, width, height - 1)]
        else:
            indexes = list(self._layout.shown)
            areas = [self._layout.area(index) for index in indexes]
        charts = [self.charts[index] for index in indexes]
        values = self._read(charts)
        self.on_time = values.on_time
        self._drawn = {chart[:2]: lines for chart, lines in zip(charts, values.lines, strict=True)}
        self.shown = []
        rows: dict[int, Row] = {y: [] for y in range(height - 1)}
        for index, area, lines in zip(indexes, areas, values.lines, strict=True):
            for y, row in enumerate(self._draw(index, area, lines, values)):
                rows[area[1] + y] += row
        if not self.charts:
            rows[1] = [("  no chart matches the filter" if self.pattern else f"  {self.empty_text}", "dim")]
        self.show([self._head(), *rows.values()])

    def _draw(
        self, index: int, area: tuple[int, int, int, int], lines: list[ChartLine], values: ChartValues
    ) -> list[Row]:
        chart = self.charts[index]
        mode, axis = self._mode(chart, lines), self._axis_of(chart)
        style = ChartStyle(
            mode == "log",
            mode == "heatmap",
            _GUIDES[self._guides],
            self.has_focus and index == self._layout.focus,
            values.on_time,
            values.x_start,
            self.cross if axis == self.cross_axis else None,
            self.palette.has_colours,
            inert(axis),
        )
        extents = (line.series.extent for line in lines if line.series.count)
        everything = values.extent or extent(extents) or (0.0, 1.0)
        dots = 2 * (area[2] - 2)
        window = self._window_of(axis)
        x_range = window.steady(everything, dots) if values.grows else window.range(everything)
        title = inert(chart.title) + (" (log)" if style.log else "")
        drawn = draw(title, chart.unit, lines, x_range, *area[2:], style)
        plot_left = area[0] + drawn.plot_left
        self.shown.append(ShownChart(index, axis, *area, plot_left, drawn.plot_width, x_range, everything))
        return drawn.rows

    def _mode(self, chart: Chart, lines: Sequence[ChartLine]) -> Mode:
        """Return the mode of a chart: as chosen, else a heatmap for many lines, else lines."""
        usual: Mode = "heatmap" if len(lines) > MAX_LINES * metrics_of(chart) else "lines"
        return self._modes.get(chart[:2], usual)

    def _head(self) -> Row:
        layout, matching_count, total = self._layout, len(self.charts), len(self._all)
        parts = [
            f"{matching_count} of {total} with {self.kind_of_filter}{inert(self.pattern)}"
            if self.pattern
            else f"{total}"
        ]
        if layout.pages > 1 and not self.is_full:
            parts.append(f"page {layout.page + 1} of {layout.pages}")
        if self._is_wanted is None and matching_count < total:
            parts.append(f"{total - matching_count} hidden by the run")
        if self.charts:
            axis = self._axis_of(self.charts[layout.focus])
            label = axes.elapsed if self.on_time else _of_metric(axis) if axis else _steps
            parts.append(self._window_of(axis).note(label, "whole run"))
        if self.on_time != self.usually_on_time:
            parts.append("over time")
        return [(self.title, "focus" if self.has_focus else "dim"), (f"  {' · '.join(parts)}", "dim")]

    # -- events

    def on_click(self, event: events.Click) -> None:
        """Focus the clicked chart."""
        chart = self._at(event)
        if chart is not None and event.button == 1:
            self._layout.focus = chart.chart
            self.redraw()

    def _at(self, event: events.MouseEvent) -> ShownChart | None:
        """Return the chart below the mouse."""
        x, y = event.x, event.y - 1
        inside = (
            chart
            for chart in self.shown
            if chart.left <= x < chart.left + chart.width and chart.top <= y < chart.top + chart.height
        )
        return next(inside, None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Place the crosshair with the right or middle button."""
        self.on_mouse_move(event)

    def on_mouse_move(self, event: events.MouseEvent) -> None:
        """Drag the crosshair with the right button, as in W&B's LEET, or with the middle one."""
        chart = self._at(event) if event.button in (2, 3) else None
        if chart is not None:
            event.stop()
            self.post_message(self.CrossMoved(self, chart.x_at(event.x), chart.axis))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out at the mouse."""
        self._zoom_at(event, 1.0 / _ZOOM)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in at the mouse."""
        self._zoom_at(event, _ZOOM)

    def _zoom_at(self, event: events.MouseEvent, factor: float) -> None:
        event.stop()
        chart = self._at(event)
        if chart is not None:
            self._window_of(chart.axis).zoom(factor, chart.x_at(event.x), chart.extent)
            self.redraw()


def _steps(count: float) -> str:
    return f"{axes.label(count, '')} steps"


def _of_metric(axis: str) -> Callable[[float], str]:
    return lambda span: f"{axes.label(span, '')} of {inert(axis)}"
