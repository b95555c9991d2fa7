"""A grid of charts: one widget, which draws only the charts of its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from textual import events
from textual.message import Message

from runvitals.leet import reduction
from runvitals.leet.axes import extent
from runvitals.leet.braille import Row
from runvitals.leet.chart_layout import ChartLayout
from runvitals.leet.chart_view import ChartLine, ChartStyle, Guides, draw
from runvitals.leet.charts import Chart, matching
from runvitals.leet.rows_widget import RowsWidget
from runvitals.regular_expressions import finder
from runvitals.terminal import inert

_GUIDES: tuple[Guides, ...] = ("off", "dots", "lines")


class ChartValues(NamedTuple):
    """The values of the charts of a page, and the range of x.

    Args:
        lines: of each chart.
        x_range: None: from the first to the last value of each chart.
        on_time: whether x is a time rather than a step.
        x_start: what the labels of the x-axis count from.
    """

    lines: list[list[ChartLine]]
    x_range: tuple[float, float] | None
    on_time: bool
    x_start: float


class ChartGrid(RowsWidget, can_focus=True):
    """A grid of charts with a filter.

    Args:
        title: in the first row.
        size: columns and rows.
        read: returns the values of charts.
    """

    class Zoomed(Message):
        """The user turned the mouse wheel over a grid: by 1 out, by -1 in."""

        def __init__(self, grid: ChartGrid, by: int) -> None:
            super().__init__()
            self.grid, self.by = grid, by

    def __init__(
        self, title: str, size: tuple[int, int], read: Callable[[Sequence[Chart]], ChartValues], *, id: str
    ) -> None:
        super().__init__(id=id)
        self.title = title
        self.note = ""
        self.pattern = ""
        self.is_full = False
        self.charts: list[Chart] = []
        self._all: Sequence[Chart] = ()
        self._usual_size = size
        self._layout = ChartLayout(*size)
        self._read = read
        self._is_wanted: Callable[[str], bool] | None = None
        self._log: set[tuple[str, str]] = set()
        self._guides = 0

    # -- what is shown

    def set_charts(self, charts: Sequence[Chart]) -> None:
        """Set all charts, of which those that match the filter are shown, and draw them."""
        focused = self.focused_chart
        self._all = charts
        self.charts = list(charts) if self._is_wanted is None else matching(charts, self._is_wanted)
        self._layout.resize(len(self.charts))
        if focused is not None:  # new charts may have been sorted in before it
            places = [place for place, chart in enumerate(self.charts) if chart[:2] == focused[:2]]
            self._layout.focus = places[0] if places else self._layout.focus
        self.redraw()

    def set_filter(self, pattern: str) -> None:
        """Show only charts whose title or keys contain a match of a regular expression.

        Raises:
            ValueError: invalid regular expression.
        """
        self._is_wanted = finder(pattern) if pattern else None
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

    def toggle_log(self) -> None:
        """Change between linear and logarithmic y-axis of the focused chart."""
        if self.focused_chart is not None:
            self._log ^= {self.focused_chart[:2]}
            self.redraw()

    def next_guides(self) -> None:
        """Change the guides of all charts."""
        self._guides = (self._guides + 1) % len(_GUIDES)
        self.redraw()

    def set_size(self, columns: int | None = None, rows: int | None = None) -> None:
        """Change the number of columns or rows; without any, both to the usual ones."""
        usual = self._usual_size if columns is rows is None else (self._layout.columns, self._layout.rows)
        self._layout.columns, self._layout.rows = columns or usual[0], rows or usual[1]
        self.redraw()

    # -- drawing

    def redraw(self) -> None:
        """Read the values of the charts that are shown, and draw them."""
        width, height = self.size
        if width < 4 or height < 4:
            return
        self._layout.fit(width, height - 1)
        if self.is_full and self.charts:
            indexes: Iterable[int] = [self._layout.focus]
            places = [(0, 0, width, height - 1)]
        else:
            indexes = self._layout.shown
            places = [self._layout.place(index) for index in indexes]
        indexes = list(indexes)
        values = self._read([self.charts[index] for index in indexes])
        rows: dict[int, Row] = {y: [] for y in range(height - 1)}
        for index, (_, top, *size), lines in zip(indexes, places, values.lines, strict=True):
            for y, row in enumerate(self._draw(index, lines, values, *size)):
                rows[top + y] += row
        if not self.charts:
            rows[1] = [("  no chart matches the filter" if self.pattern else "  no values yet", "dim")]
        self.show([self._head(), *rows.values()])

    def _draw(
        self, index: int, lines: list[ChartLine], values: ChartValues, width: int, height: int
    ) -> list[Row]:
        chart = self.charts[index]
        style = ChartStyle(
            chart[:2] in self._log,
            _GUIDES[self._guides],
            self.has_focus and index == self._layout.focus,
            values.on_time,
            values.x_start,
        )
        known = (found for line in lines if (found := reduction.x_range(line.x)) is not None)
        x_range = values.x_range or extent(known) or (0.0, 1.0)
        title = inert(chart.title) + (" (log)" if style.log else "")
        return draw(title, chart.unit, lines, x_range, width, height, style)

    def _head(self) -> Row:
        layout, found, known = self._layout, len(self.charts), len(self._all)
        parts = [f"{found} of {known} with {inert(self.pattern)}" if self.pattern else f"{known}"]
        if layout.pages > 1 and not self.is_full:
            parts.append(f"page {layout.page + 1} of {layout.pages}")
        if self.note:
            parts.append(self.note)
        return [(self.title, "focus" if self.has_focus else "dim"), (f"  {' · '.join(parts)}", "dim")]

    # -- events

    def on_resize(self) -> None:
        self.redraw()

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        found = None if self.is_full else self._layout.at(event.x, event.y - 1)
        if found is not None:
            self._layout.focus = found
            self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Zoomed(self, 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Zoomed(self, -1))
