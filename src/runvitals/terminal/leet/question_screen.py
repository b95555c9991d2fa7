"""A yes-or-no question, answered with y or n."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from runvitals.terminal.leet.rows_widget import RowsWidget


class QuestionScreen(ModalScreen[bool]):
    """A question over the screen; only y says yes.

    Args:
        question: safe for a terminal.
    """

    DEFAULT_CSS = """
    QuestionScreen { align: center bottom; }
    QuestionScreen RowsWidget { height: 2; }
    """
    BINDINGS = [
        Binding("y", "dismiss(True)", show=False),
        Binding("n,escape,enter,q", "dismiss(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Yield the two rows of the question."""
        self.line = RowsWidget(id="question")
        yield self.line

    def on_resize(self) -> None:
        """Show the question and its keys."""
        rows = [[(f" {self._question}", "bad")], [(" y yes · n no", "title")]]
        self.call_after_refresh(self.line.show, rows)
