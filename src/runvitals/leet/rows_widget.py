"""The base of our widgets: rows of text, of which only those that changed are written to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from runvitals.leet.braille import Row

# Colours that people with colour-blindness can tell apart (Okabe and Ito), in an order of contrast.
_LINES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#5f9ee9", "#b0b0b0")
STYLES: Mapping[str, Style] = {
    "": Style(),
    "dim": Style(color="#8a8a8a"),
    "frame": Style(color="#5a5a5a"),
    "focus": Style(bold=True),
    "guide": Style(color="#444444"),
    "title": Style(bold=True),
    "value": Style(color="#56b4e9"),
    "good": Style(color="#009e73", bold=True),
    "bad": Style(color="#d55e00", bold=True),
    "cursor": Style(reverse=True),
    **{f"line{index}": Style(color=colour) for index, colour in enumerate(_LINES)},
}


class RowsWidget(Widget):
    """A widget of rows. Over a slow connection, rows that stay as they are cost nothing."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._strips: list[Strip] = []

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows, from the top of the widget."""
        width = self.size.width
        strips = [
            Strip([Segment(text, STYLES[style]) for text, style in row]).adjust_cell_length(width)
            for row in rows
        ]
        before, self._strips = self._strips, strips
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(strips), len(before)))
            if y >= len(strips) or y >= len(before) or strips[y] != before[y]
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One row, as Textual asks for it."""
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)
        return strip.apply_style(self.rich_style)

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "\n".join(strip.text.rstrip() for strip in self._strips)
