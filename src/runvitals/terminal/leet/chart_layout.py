"""Arranges charts in pages of rows and columns, with one chart in focus."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.terminal.leet.chart_view import MIN_HEIGHT, MIN_WIDTH


@dataclass(slots=True)
class ChartLayout:
    """The arrangement of charts in pages.

    Args:
        columns, rows: the most to show; fewer if they do not fit.
        count: number of charts.
        focus: the index of the chart in focus.

    Example:
        >>> layout = ChartLayout(2, 2, count=5)
        >>> layout.fit(80, 24)
        >>> layout.move(0, 2)
        >>> layout.page, list(layout.shown)
        (1, [4])
    """

    columns: int
    rows: int
    count: int = 0
    focus: int = 0
    width: int = 0
    height: int = 0

    def fit(self, width: int, height: int) -> None:
        """Set the size of the area in cells."""
        self.width, self.height = width, height

    def resize(self, count: int) -> None:
        """Set the number of charts."""
        self.count = count
        self.focus = min(self.focus, max(count - 1, 0))

    @property
    def shown_columns(self) -> int:
        """The columns of a page: as wanted, as far as they fit."""
        return max(min(self.columns, self.width // MIN_WIDTH, max(self.count, 1)), 1)

    @property
    def shown_rows(self) -> int:
        """The rows of a page: as wanted, as far as they fit and are needed."""
        needed = -(-max(self.count, 1) // self.shown_columns)
        return max(min(self.rows, self.height // MIN_HEIGHT, needed), 1)

    @property
    def per_page(self) -> int:
        """The most charts of a page."""
        return self.shown_columns * self.shown_rows

    @property
    def page(self) -> int:
        """The page with the focused chart, from 0."""
        return self.focus // self.per_page

    @property
    def pages(self) -> int:
        """The number of pages."""
        return -(-self.count // self.per_page)

    @property
    def shown(self) -> range:
        """The indexes of the charts of this page."""
        first = self.page * self.per_page
        return range(first, min(first + self.per_page, self.count))

    def area(self, index: int) -> tuple[int, int, int, int]:
        """Return (x, y, width, height) of a chart of this page, in cells.

        The last column and row take the remaining cells.
        """
        row, column = divmod(index - self.shown.start, self.shown_columns)
        xs = [self.width * part // self.shown_columns for part in (column, column + 1)]
        ys = [self.height * part // self.shown_rows for part in (row, row + 1)]
        return xs[0], ys[0], xs[1] - xs[0], ys[1] - ys[0]

    def at(self, x: int, y: int) -> int | None:
        """Return the index of the chart at a cell of the area."""
        for index in self.shown:
            left, top, width, height = self.area(index)
            if left <= x < left + width and top <= y < top + height:
                return index
        return None

    def move(self, right: int, down: int) -> None:
        """Move the focus, onto other pages too."""
        target = self.focus + right + down * self.shown_columns
        if 0 <= target < self.count:
            self.focus = target

    def turn(self, pages: int) -> None:
        """Show another page; beyond the last follows the first."""
        if self.pages:
            self.focus = min((self.page + pages) % self.pages * self.per_page, self.count - 1)

    def to_end(self, last: bool) -> None:
        """Show the first or the last page."""
        self.focus = max(self.pages - 1, 0) * self.per_page if last else 0
