"""The pane that lists runs."""

from __future__ import annotations

from textual import events

from runvitals.leet.braille import Row
from runvitals.leet.rows_widget import RowsWidget
from runvitals.leet.run_table import ListedRuns
from runvitals.terminal import inert


class RunsPane(RowsWidget, can_focus=True):
    """The list of runs.

    Args:
        table: what it shows.
    """

    def __init__(self, table: ListedRuns, *, id: str) -> None:
        super().__init__(id=id)
        self.title = "Runs"
        self.table = table
        self.pattern = ""

    def set_filter(self, pattern: str) -> None:
        """Show only runs that match a filter text.

        Raises:
            ValueError: not a filter.
        """
        self.table.set_filter(pattern)
        self.pattern = pattern
        self.redraw()

    def move(self, right: int, down: int) -> None:
        """Move the cursor down."""
        self.table.move(down)
        self.redraw()

    def turn(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.move(0, pages * max(self.size.height - 1, 1))

    def to_end(self, last: bool) -> None:
        """Move the cursor to the first or the last run."""
        self.move(0, len(self.table.runs) if last else -len(self.table.runs))

    def redraw(self) -> None:
        """Show the runs around the cursor."""
        table = self.table
        counts = f"{len(table.runs)} of {table.count}" if self.pattern else f"{table.count}"
        shown = f"  {counts} · {len(table.selected)} selected"
        head: Row = [(self.title, "focus" if self.has_focus else "dim"), (shown, "dim")]
        if self.pattern:
            head.append((f" · {inert(self.pattern)}", "dim"))
        self.show([head, *table.rows(max(self.size.height - 1, 1))])

    def on_resize(self) -> None:
        self.redraw()

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(0, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(0, -3)
