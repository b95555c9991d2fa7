"""The pane that lists runs."""

from __future__ import annotations

from textual.message import Message

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.pane import ListPane
from runvitals.terminal.leet.run_table import ListedRuns


class RunsPane(ListPane):
    """The list of runs.

    Args:
        table: the rows to show.
    """

    def __init__(self, table: ListedRuns, *, id: str) -> None:
        super().__init__("Runs", id=id)
        self.table = table

    @property
    def count(self) -> int:
        """The number of runs that match the filter."""
        return len(self.table.runs)

    @property
    def cursor_index(self) -> int:
        """The index of the run at the cursor."""
        return self.table.cursor

    def set_filter(self, pattern: str) -> None:
        """Show only runs that match a filter text; raise ValueError if it is none."""
        self.table.set_filter(pattern)
        self.pattern = pattern
        self.redraw()

    class Moved(Message):
        """The cursor is at another run."""

    def move_cursor(self, rows: int) -> None:
        """Move the cursor, and post `Moved`."""
        self.table.move(rows)
        self.redraw()
        self.post_message(self.Moved())

    def redraw(self) -> None:
        """Show the runs around the cursor."""
        table = self.table
        counts = f"{len(table.runs)} of {table.count}" if self.pattern else f"{table.count}"
        counts_text = f"  {counts} · {len(table.selected)} selected"
        head: Row = [(self.title, "focus" if self.has_focus else "dim"), (counts_text, "dim")]
        if self.pattern:
            head.append((f" · {inert(self.pattern)}", "dim"))
        rows = table.rows(self.size.width, self.first, self.page)
        if not rows:
            why = "no run matches the filter" if self.pattern else "no runs yet"
            rows = [[(f"  {why if table.is_read else 'reading the runs …'}", "dim")]]
        self.show([head, *rows])
