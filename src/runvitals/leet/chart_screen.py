"""What the screens with charts have in common: a line above and below, keys about charts, and filters."""

from __future__ import annotations

from typing import ClassVar, Protocol, cast

from textual.screen import Screen
from textual.widgets import Input

from runvitals.leet.chart_grid import ChartGrid
from runvitals.leet.rows_widget import RowsWidget
from runvitals.terminal import inert


class Pane(Protocol):
    """What keys apply to while it has the focus."""

    title: str
    pattern: str

    def set_filter(self, pattern: str) -> None: ...
    def move(self, right: int, down: int) -> None: ...
    def turn(self, pages: int) -> None: ...
    def to_end(self, last: bool) -> None: ...
    def redraw(self) -> None: ...


class ChartScreen(Screen[None]):
    """A screen with a grid of metrics."""

    DEFAULT_CSS = """
    ChartScreen #header, ChartScreen #footer { height: 1; }
    ChartScreen Input, ChartScreen Input:focus { height: 1; border: none; padding: 0; display: none; }
    ChartScreen .hidden { display: none; }
    """
    HINT: ClassVar[str] = ""

    metrics: ChartGrid

    def __init__(self) -> None:
        super().__init__()
        self.header = RowsWidget(id="header")
        self.footer = RowsWidget(id="footer")
        self.filter = Input(id="filter")
        self.on_time = False
        self.message = ""
        self._choosing = ""
        self._edited: Pane | None = None
        self._pattern_before = ""

    @property
    def grid(self) -> ChartGrid:
        """The grid that keys about charts apply to."""
        return self.metrics

    @property
    def pane(self) -> Pane:
        """The pane in focus."""
        return cast(Pane, self.focused) if isinstance(self.focused, RowsWidget) else self.metrics

    def show_footer(self) -> None:
        """Show a message, or which keys there are."""
        self.footer.show([[(f" {self.message}", "bad")] if self.message else [(self.HINT, "dim")]])

    # -- keys

    def action_move(self, right: int, down: int) -> None:
        self.pane.move(right, down)

    def action_turn(self, pages: int) -> None:
        self.pane.turn(pages)

    def action_to_end(self, last: bool) -> None:
        self.pane.to_end(last)

    def action_log(self) -> None:
        self.grid.toggle_log()

    def action_guides(self) -> None:
        self.grid.next_guides()

    def action_x_axis(self) -> None:
        self.on_time = not self.on_time
        self.metrics.note = "over time" if self.on_time else ""
        self.metrics.redraw()

    def action_choose(self, what: str) -> None:
        self._choosing = what
        self.message = f"{what}: press 1 to 9"
        self.show_footer()

    def action_digit(self, digit: int) -> None:
        what, self._choosing, self.message = self._choosing, "", ""
        self.show_footer()
        if what and digit:
            self.grid.set_size(**{what: digit})
        else:
            self.press_digit(digit)

    def press_digit(self, digit: int) -> None:
        """What a digit does if no key before it waited for one."""

    def action_back(self) -> None:
        if self._edited is not None:
            self._apply(self._pattern_before)
            self._close_filter()
        elif self._choosing or self.message:
            self._choosing = self.message = ""
            self.show_footer()
        else:
            self.leave()

    def leave(self) -> None:
        """What esc does if nothing is open."""

    # -- filters

    def edit_filter(self, pane: Pane, hint: str = "regular expression") -> None:
        """Let the user edit the filter of a pane, which applies at once."""
        self._edited, self._pattern_before = pane, pane.pattern
        self.filter.value = pane.pattern
        self.filter.placeholder = f"{pane.title}: {hint}; enter keeps it, esc does not"
        self.filter.styles.display = "block"
        self.filter.focus()

    def _apply(self, pattern: str) -> None:
        assert self._edited is not None
        try:
            self._edited.set_filter(pattern)
            self.message = ""
        except ValueError as error:
            self.message = inert(error)
        self.show_footer()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._edited is not None:
            self._apply(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._edited is not None and not self.message:
            self._close_filter()

    def _close_filter(self) -> None:
        pane, self._edited = self._edited, None
        self.filter.styles.display = "none"
        if isinstance(pane, RowsWidget):
            pane.focus()
