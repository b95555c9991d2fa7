"""The command palette: everything that keys do, by name."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Input

from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.keys import Key
from runvitals.terminal.leet.rows_widget import RowsWidget


class CommandScreen(ModalScreen[str | None]):
    """A search among the commands of a screen. Its result is the action of the chosen one.

    Args:
        keys: the commands.
    """

    DEFAULT_CSS = """
    CommandScreen RowsWidget { height: 1fr; }
    CommandScreen Input, CommandScreen Input:focus { height: 1; border: none; padding: 0; }
    """
    BINDINGS = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down,tab", "move(1)", show=False, priority=True),
    ]

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = [key for key in keys if key.text and key.action]
        self._cursor = 0

    def compose(self) -> ComposeResult:
        """Yield the search field and the commands."""
        self.words = Input(placeholder="a command; enter runs it, esc does not")
        self.commands = RowsWidget(id="commands")
        yield self.words
        yield self.commands

    def on_mount(self) -> None:
        """Focus the search field."""
        self.words.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Show the commands in the new size."""
        self.call_after_refresh(self.redraw)

    @property
    def matching(self) -> list[Key]:
        """The commands that have all words."""
        words = self.words.value.casefold().split()
        return [key for key in self._keys if all(word in key.text.casefold() for word in words)]

    def redraw(self) -> None:
        """Show the commands that were found."""
        commands, height = self.matching, max(self.commands.size.height, 1)
        self._cursor = min(self._cursor, max(len(commands) - 1, 0))
        first = min(max(self._cursor - height // 2, 0), max(len(commands) - height, 0))
        rows: list[Row] = [
            [(f" {key.shown:<16} ", "value"), (key.text, "cursor" if index == self._cursor else "")]
            for index, key in enumerate(commands[first : first + height], first)
        ]
        self.commands.show(rows or [[(" no command has these words", "dim")]])

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the commands that match."""
        self._cursor = 0
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the action of the command at the cursor."""
        commands = self.matching
        self.dismiss(commands[self._cursor].action if commands else None)

    def action_move(self, by: int) -> None:
        """Move the cursor; beyond the last command follows the first."""
        self._cursor = (self._cursor + by) % max(len(self.matching), 1)
        self.redraw()
