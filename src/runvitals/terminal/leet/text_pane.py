"""A pane of text that scrolls: the overview, the console logs, the help."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from textual.message import Message

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.pane import ScrolledPane


class TextPane(ScrolledPane):
    """Rows that scroll.

    Args:
        title: shown in the first row.
        follows: whether the end is shown, until the user scrolls up.

    Attributes:
        marks: whether keys move the mark from row to row, rather than scroll.
    """

    takes_globs = True

    class Marked(Message):
        """The user moved the mark to the row with this index."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, title: str, *, follows: bool = False, id: str | None = None) -> None:
        super().__init__(title, id=id)
        self._is_wanted: Callable[[str], bool] | None = None
        self._follows = self._is_at_end = follows
        self._all: Sequence[Row] = ()
        self._top = 0
        self._marked: int | None = None
        self.marks = False

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Set all rows."""
        self._all = rows
        self.redraw()

    def mark(self, index: int | None) -> None:
        """Mark the row with an index and scroll to it; None removes the mark.

        If the filter hides the row, the last shown one before it is marked.
        """
        self._marked = index
        if index is None:
            self._is_at_end = self._follows
            self.redraw()
            return
        count = len(self._matching_rows(self._all[: index + 1]))
        self._is_at_end = False
        self._top = max(count - 1 - self._height // 2, 0)
        self.redraw()

    @property
    def marked(self) -> int | None:
        """The index of the marked row."""
        return self._marked

    def _move_mark(self, rows: int) -> None:
        """Move the mark among the rows that the filter shows; without one, it starts at the last."""
        indexes = [index for index, row in enumerate(self._all) if self._matching_rows([row])]
        if indexes:
            before = len(indexes) if self._marked is None else bisect_right(indexes, self._marked) - 1
            self.mark(indexes[min(max(before + rows, 0), len(indexes) - 1)])
            self.post_message(self.Marked(self._marked or 0))

    @property
    def marked_text(self) -> str:
        """The text of the marked row; "" without one."""
        row = [] if self._marked is None else self._all[self._marked]
        return "".join(text for text, _ in row)

    def set_filter(self, pattern: str) -> None:
        """Show only rows that a regular expression or glob matches, or raise ValueError."""
        self._is_wanted = self.test_of(pattern)
        self.pattern = pattern
        self.redraw()

    def scroll_rows(self, rows: int) -> None:
        """Scroll down by a number of rows, or up by a negative one."""
        last = max(len(self._matching_rows()) - self._height, 0)
        self._top = min(max(self._top + rows, 0), last)
        self._is_at_end = self._follows and self._top == last
        self.redraw()

    def move(self, right: int, down: int) -> None:
        """Scroll down by rows, and by a page for each step to the right."""
        self._go(down + right * self._height)

    def turn(self, pages: int) -> None:
        """Scroll by pages."""
        self._go(pages * self._height)

    def to_end(self, last: bool) -> None:
        """Scroll to the first or the last row."""
        count = len(self._all)
        self._go(count if last else -count)

    def _go(self, rows: int) -> None:
        if self.marks:
            self._move_mark(rows)
        else:
            self.scroll_rows(rows)

    @property
    def _height(self) -> int:
        return max(self.size.height - 1, 1)

    def _matching_rows(self, rows: Sequence[Row] | None = None) -> list[Row]:
        """Return the rows that the filter shows, of some or of all."""
        is_wanted, rows = self._is_wanted, self._all if rows is None else rows
        if is_wanted is None:
            return list(rows)
        return [row for row in rows if is_wanted("".join(text for text, _ in row))]

    def redraw(self) -> None:
        """Show the rows at the present position."""
        rows = self._matching_rows()
        last = max(len(rows) - self._height, 0)
        self._top = last if self._is_at_end else min(self._top, last)
        hint = (
            f"  {len(rows)} of {len(self._all)} with {self.kind_of_filter}{inert(self.pattern)}"
            if self.pattern
            else ""
        )
        head: Row = [(self.title, "focus" if self.has_focus else "dim"), (hint, "dim")]
        visible_rows = rows[self._top : self._top + self._height]
        if self._marked is not None and self._marked < len(self._all):
            before = len(self._matching_rows(self._all[: self._marked + 1])) - 1 - self._top
            if 0 <= before < len(visible_rows):
                visible_rows[before] = [(text, "cursor") for text, _ in visible_rows[before]]
        self.show([head, *visible_rows])
