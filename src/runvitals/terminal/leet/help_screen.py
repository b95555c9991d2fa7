"""The help: what the keys do."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from runvitals.terminal.leet.keys import Key, help_rows
from runvitals.terminal.leet.text_pane import TextPane


class HelpScreen(ModalScreen[None]):
    """A list of keys, until a key closes it."""

    DEFAULT_CSS = """
    HelpScreen TextPane { width: 1fr; height: 1fr; padding: 0 1; }
    """
    BINDINGS = [
        Binding("escape,h,question_mark,enter", "dismiss", show=False),
        Binding("q,ctrl+c", "app.quit", show=False),
        Binding("up,w", "scroll_rows(-1)", show=False),
        Binding("down,s", "scroll_rows(1)", show=False),
        Binding("pageup,N", "turn(-1)", show=False),
        Binding("pagedown,n", "turn(1)", show=False),
    ]

    def __init__(self, title: str, keys: Sequence[Key]) -> None:
        super().__init__()
        self._title, self._keys = f"{title} (esc closes this help)", keys

    def compose(self) -> ComposeResult:
        """Yield the pane of the help."""
        self.pane = TextPane("Help", id="help")
        yield self.pane

    def on_mount(self) -> None:
        """Focus the help, so that it scrolls."""
        self.pane.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the help at the new width."""
        rows = help_rows(self._title, self._keys, event.size.width - 2)
        self.call_after_refresh(self.pane.set_rows, rows)

    def action_scroll_rows(self, rows: int) -> None:
        """Scroll down by rows, or up by negative ones."""
        self.pane.scroll_rows(rows)

    def action_turn(self, pages: int) -> None:
        """Turn pages."""
        self.pane.turn(pages)
