"""The base of screens: a line above and below, and a filter of the pane in focus."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol, TypeGuard, cast

from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Input

from runvitals.base.terminal_text import inert
from runvitals.model.errors import UnknownRun
from runvitals.terminal.leet.command_screen import CommandScreen
from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.config_screen import ConfigScreen
from runvitals.terminal.leet.help_screen import HelpScreen
from runvitals.terminal.leet.keys import Key
from runvitals.terminal.leet.pane import FocusablePane
from runvitals.terminal.leet.pane_borders import PaneBorders
from runvitals.terminal.leet.rows_widget import RowsWidget

READ_ERRORS = (OSError, UnknownRun, ValueError)
"""The errors that reading a run or a list of runs may raise."""


def reason(error: Exception) -> str:
    """Return the reason of a failed read, safe for a terminal."""
    if not (isinstance(error, OSError) and error.strerror):
        return inert(error)
    return inert(f"{error.strerror}: {error.filename}" if error.filename else error.strerror)


class Filterable(Protocol):
    """An object with a filter."""

    title: str

    @property
    def pattern(self) -> str:
        """The text of the filter; "" without one."""
        ...

    def set_filter(self, pattern: str) -> None:
        """Show only what matches the filter."""
        ...


class Pane(Filterable, Protocol):
    """A pane that keys apply to while it has the focus."""

    def move(self, right: int, down: int) -> None:
        """Move to the right and down, by negative numbers to the left and up."""
        ...

    def turn(self, pages: int) -> None:
        """Turn pages."""
        ...

    def to_end(self, last: bool) -> None:
        """Go to the last item, or to the first."""
        ...


class Configured(Protocol):
    """A program with a configuration."""

    config: Config


def takes_globs(edited: object) -> TypeGuard[FocusablePane]:
    """Return whether a filter may be a glob, too."""
    return isinstance(edited, FocusablePane) and edited.takes_globs


class FilterInput(Input):
    """The line in which a filter is edited."""

    BINDINGS = [Binding("tab", "screen.filter_kind", show=False)]


class FilteredScreen(Screen[None]):
    """A screen with panes that have filters."""

    DEFAULT_CSS = """
    FilteredScreen #header, FilteredScreen #footer { height: 1; }
    FilteredScreen Input, FilteredScreen Input:focus { height: 1; border: none; padding: 0; display: none; }
    FilteredScreen .hidden { display: none; }
    """
    HINT: ClassVar[str] = ""
    KEYS: ClassVar[tuple[Key, ...]] = ()
    HELP: ClassVar[str] = "Keys"

    def __init__(self) -> None:
        super().__init__()
        self.header = RowsWidget(id="header")
        self.footer = RowsWidget(id="footer")
        self.filter = FilterInput(id="filter")
        self.message = ""
        self._problems: dict[str, str] = {}
        self.borders = PaneBorders()
        self._edited: Filterable | None = None
        self._pattern_before = self._kind = ""
        self._was_glob = False

    @property
    @abstractmethod
    def default_pane(self) -> Pane:
        """The pane that keys apply to if none has the focus."""

    @property
    def hint(self) -> str:
        """The keys that apply now."""
        return self.HINT

    @property
    def pane(self) -> Pane:
        """The pane in focus."""
        return cast(Pane, self.focused) if isinstance(self.focused, RowsWidget) else self.default_pane

    def show_footer(self) -> None:
        """Show a message, what is edited, what cannot be read, or which keys there are."""
        problem = "" if self._edited is not None else next(iter(self._problems.values()), "")
        prompt = self.hint if self._edited is None else f" {self._prompt(self._edited)}"
        text = self.message or problem
        self.footer.show([[(f" {text}", "bad")] if text else [(prompt, "dim")]])

    def report(self, what: str, error: Exception | None) -> None:
        """Show why something cannot be read, until it can be again (None)."""
        before = self._problems.pop(what, "")
        if error is not None:
            self._problems[what] = f"{what} cannot be read: {reason(error)}"
        if self._problems.get(what, "") != before:
            self.show_footer()

    def _prompt(self, edited: Filterable) -> str:
        """Return the title and kind of the filter, and the keys that end its editing."""
        kind = self._kind
        if takes_globs(edited):
            kind, other = ("glob", "regular expression") if edited.is_glob else ("regular expression", "glob")
            kind = f"{kind} (tab: {other})"
        return f"{edited.title}: {kind} · enter keeps it · esc does not"

    # -- keys

    def action_move(self, right: int, down: int) -> None:
        """Move the focus, cursor or text of the pane in focus."""
        self.pane.move(right, down)

    def action_turn(self, pages: int) -> None:
        """Turn pages of the pane in focus."""
        self.pane.turn(pages)

    def action_to_end(self, last: bool) -> None:
        """Go to the end or the start of the pane in focus."""
        self.pane.to_end(last)

    def action_back(self) -> None:
        """Cancel the filter, else dismiss the message, else leave the pane or screen."""
        if self._edited is not None:
            if takes_globs(self._edited):
                self._edited.is_glob = self._was_glob
            self._apply(self._pattern_before)
            self._close_filter()
        elif self.message:
            self.message = ""
            self.show_footer()
        else:
            self.leave()

    def action_help(self) -> None:
        """Show the keys of this screen."""
        self.app.push_screen(HelpScreen(self.HELP, self.KEYS))

    def action_palette(self) -> None:
        """Show the command palette, and run the chosen command."""

        async def run(action: str | None) -> None:
            if action is not None:
                await self.run_action(action)

        self.app.push_screen(CommandScreen(self.KEYS), run)

    def action_config(self) -> None:
        """Edit the settings, and apply them."""

        def changed(_: None) -> None:
            self.apply_config(self.config)
            for pane in self.query(RowsWidget):
                if isinstance(pane, FocusablePane):
                    pane.redraw()

        self.app.push_screen(ConfigScreen(self.config), changed)

    @property
    def config(self) -> Config:
        """The configuration of the program."""
        return cast(Configured, self.app).config

    def apply_config(self, config: Config) -> None:
        """Use changed settings."""

    def leave(self) -> None:
        """Leave the pane or the screen; called for esc when nothing else is open."""

    # -- borders between panes

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start to drag the border below the mouse."""
        if event.button == 1:
            self.borders.begin(event.screen_x, event.screen_y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the border, or stop if the button was released outside the terminal."""
        if event.button != 1:  # it was released outside the terminal
            self.borders.end()
        elif self.borders.drag(event.screen_x, event.screen_y):
            event.stop()

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        self.borders.end()

    # -- filters

    def edit_filter(self, pane: Filterable, hint: str = "regular expression") -> None:
        """Let the user edit the filter of a pane, which applies at once."""
        self._edited, self._pattern_before, self._kind = pane, pane.pattern, hint
        self._was_glob = takes_globs(pane) and pane.is_glob
        self.filter.value = pane.pattern
        self.filter.styles.display = "block"
        self.filter.focus()
        self.show_footer()

    def action_filter_kind(self) -> None:
        """Take what is edited as a glob, or as a regular expression again."""
        if takes_globs(self._edited):
            self._edited.is_glob = not self._edited.is_glob
            self._apply(self.filter.value)

    def _apply(self, pattern: str) -> None:
        assert self._edited is not None
        try:
            self._edited.set_filter(pattern)
            self.message = ""
        except ValueError as error:
            self.message = inert(error)
        self.show_footer()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter as it is typed."""
        if self._edited is not None:
            self._apply(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter, unless it is invalid."""
        if self._edited is not None and not self.message:
            self._close_filter()

    def _close_filter(self) -> None:
        pane, self._edited = self._edited, None
        self.filter.styles.display = "none"
        focused = pane if isinstance(pane, RowsWidget) else self.default_pane
        cast(RowsWidget, focused).focus()
        self.show_footer()
