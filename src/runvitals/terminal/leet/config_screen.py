"""The editor of the settings, and `runvitals leet config`, which shows only that."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.config import CHOICES, Config
from runvitals.terminal.leet.palette import HEAT_SCHEMES, LINE_SCHEMES, Palette
from runvitals.terminal.leet.program import LeetProgram
from runvitals.terminal.leet.rows_widget import RowsWidget


class ConfigScreen(ModalScreen[None]):
    """A list of settings, whose values the arrow keys change. Each change is written at once.

    Args:
        config: the settings.
    """

    DEFAULT_CSS = "ConfigScreen RowsWidget { height: 1fr; }"
    BINDINGS = [
        Binding("up,w", "move(-1)", show=False),
        Binding("down,s", "move(1)", show=False),
        Binding("right,d,enter,space", "change(1)", show=False),
        Binding("left,a", "change(-1)", show=False),
        Binding("escape,h,C", "dismiss", show=False),
        Binding("q,ctrl+c", "app.quit", show=False),
    ]

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self._cursor = 0
        self._message = ""

    def compose(self) -> ComposeResult:
        """Yield the list of settings."""
        self.rows = RowsWidget(id="config")
        yield self.rows

    def on_resize(self) -> None:
        """Show the list in the new size."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Show all settings, and samples of the colours."""
        hint = "↑ ↓ choose · ← → change · esc close"
        rows: list[Row] = [
            [("Settings", "title"), (f"  {inert(self.config.path)}", "dim")],
            [(self._message, "bad") if self._message else (hint, "dim")],
            [(CHOICES[self._cursor].text, "value")],  # in full, also where it is cut below
        ]
        for index, choice in enumerate(CHOICES):
            is_current = index == self._cursor
            value = str(self.config[choice.name])
            value_text = f"‹ {value} ›" if is_current else f"  {value}"
            rows.append([
                (f"{choice.name:<18}", "cursor" if is_current else ""),
                (f" {value_text:<18}", "value"),
                (choice.text, "dim"),
            ])  # fmt: skip
        rows += [self._sample(LINE_SCHEMES, "line"), self._sample(HEAT_SCHEMES, "heat")]
        self.rows.show(rows)

    def _sample(self, schemes: tuple[str, ...], kind: str) -> Row:
        count = 8 if kind == "line" else 10
        return [
            ("  ", ""),
            *((("━━ " if kind == "line" else "███"), f"{kind}{number}") for number in range(count)),
        ]

    def action_move(self, by: int) -> None:
        """Move to another setting."""
        self._cursor = (self._cursor + by) % len(CHOICES)
        self.redraw()

    def action_change(self, by: int) -> None:
        """Set the next (1) or previous (-1) value, and save it."""
        name = CHOICES[self._cursor].name
        try:
            self.config.set(name, self.config.next_value(name, by))
            self._message = ""
        except OSError as error:
            self._message = f"{inert(self.config.path)} cannot be written: {error.strerror}"
        RowsWidget.palette = Palette(self.config["line_colours"], self.config["heat_colours"])
        self.redraw()


class ConfigApp(LeetProgram):
    """`runvitals leet config`."""

    def on_mount(self) -> None:
        """Show the settings, and exit when they are closed."""
        self.push_screen(ConfigScreen(self.config), lambda _: self.exit())
