"""Base classes of panes: with focus, with a grid, with scrolling, and with a list and its cursor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from textual import events

from runvitals.base.regular_expressions import finder
from runvitals.readers.journals.globs import glob
from runvitals.terminal.leet.rows_widget import RowsWidget

_WHEEL_ROWS = 3


class FocusablePane(RowsWidget, can_focus=True):
    """Rows that can have the focus.

    Args:
        title: shown in the first row.

    Attributes:
        is_glob: whether the filter is a glob rather than a regular expression, where the pane takes both.
    """

    takes_globs: ClassVar[bool] = False

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.pattern = ""
        self.is_glob = False

    @property
    def kind_of_filter(self) -> str:
        """For the rows that name the filter."""
        return "glob " if self.is_glob else ""

    def test_of(self, pattern: str) -> Callable[[str], bool] | None:
        """Return a test of texts for a regex or glob, None for every text; or raise ValueError."""
        if not pattern:
            return None
        return glob(pattern) if self.is_glob else finder(pattern)

    @abstractmethod
    def redraw(self) -> None:
        """Show what there is, in the present size."""

    def fit_size(self) -> None:
        """Draw the pane again in the present size."""
        self.redraw()

    def on_resize(self) -> None:
        """Draw the pane in its new size."""
        self.fit_size()

    def on_focus(self) -> None:
        """Draw the pane with focus."""
        self.redraw()

    def on_blur(self) -> None:
        """Draw the pane without focus."""
        self.redraw()


class GridPane(FocusablePane):
    """A pane with a grid, of which one part can have the whole pane."""

    is_full = False

    @abstractmethod
    def set_size(self, columns: int | None = None, rows: int | None = None) -> None:
        """Change the number of columns or rows; without any, both to the usual ones."""

    def set_full(self, is_full: bool) -> None:
        """Show the focused part alone, or all again."""
        self.is_full = is_full
        self.call_after_refresh(self.fit_size)


class ScrolledPane(FocusablePane):
    """A pane that the mouse wheel moves."""

    @abstractmethod
    def move(self, right: int, down: int) -> None:
        """Move down by rows, or up by negative ones."""

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down by three rows."""
        event.stop()
        self.move(0, _WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up by three rows."""
        event.stop()
        self.move(0, -_WHEEL_ROWS)


class ListPane(ScrolledPane):
    """A list with a cursor, below a row with its title."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many items the cursor can be at, at least."""

    @property
    @abstractmethod
    def cursor_index(self) -> int:
        """The index of the cursor among the items that are shown."""

    @property
    def shown(self) -> int:
        """How many items are shown, as far as the filter lets them."""
        return self.count

    @property
    def page(self) -> int:
        """How many items are in view."""
        return max(self.size.height - 1, 1)

    @property
    def first(self) -> int:
        """The index of the first item in view."""
        return min(max(self.cursor_index - self.page // 2, 0), max(self.shown - self.page, 0))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to an item."""
        row = event.y - (self.size.height - self.page)  # below the titles
        if event.button == 1 and row >= 0 and self.first + row < self.shown:
            self.move_cursor(self.first + row - self.cursor_index)

    @abstractmethod
    def move_cursor(self, rows: int) -> None:
        """Move the cursor down by rows, or up by negative ones."""

    def move(self, right: int, down: int) -> None:
        """Move the cursor: down by rows, to the right by pages."""
        self.move_cursor(down + right * self.page)

    def turn(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.move_cursor(pages * self.page)

    def to_end(self, last: bool) -> None:
        """Move the cursor to the first or the last item."""
        self.move_cursor(self.count if last else -self.count)
