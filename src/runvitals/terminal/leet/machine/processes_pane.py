"""The pane that lists processes."""

from __future__ import annotations

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.machine.process_table import ProcessTable
from runvitals.terminal.leet.pane import ListPane


class ProcessesPane(ListPane):
    """The list of processes.

    Args:
        table: the rows to show.
    """

    def __init__(self, table: ProcessTable, *, id: str) -> None:
        super().__init__("Processes", id=id)
        self.table = table

    @property
    def count(self) -> int:
        """The number of processes, without the filter."""
        return self.table.count

    @property
    def cursor_index(self) -> int:
        """The index of the process at the cursor."""
        return self.table.cursor

    @property
    def shown(self) -> int:
        """The number of processes that match the filter."""
        return len(self.table.shown)

    @property
    def page(self) -> int:
        """The number of rows for processes."""
        return max(self.size.height - 2, 1)  # below two rows of headings

    def set_filter(self, pattern: str) -> None:
        """Show only processes that match a regular expression."""
        self.table.set_filter(pattern)
        self.pattern = pattern
        self.redraw()

    def move_cursor(self, rows: int) -> None:
        """Move the cursor down by rows, or up by negative ones."""
        self.table.move(rows)
        self.redraw()

    def redraw(self) -> None:
        """Show the processes around the cursor."""
        table = self.table
        notes = [f"by {table.order}", *(["tree"] if table.is_tree else [])]
        counts = f"{len(table.shown)} of {table.count} with {inert(table.pattern)}"
        notes.insert(0, counts if table.pattern else f"{table.count}")
        head: Row = [(self.title, "focus" if self.has_focus else "dim"), (f"  {' · '.join(notes)}", "dim")]
        self.show([head, *table.rows(self.size.width, self.first, self.page)])
