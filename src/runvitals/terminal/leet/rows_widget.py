"""The base of our widgets: rows of text, of which only those that changed are written to the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.palette import Palette


class RowsWidget(Widget):
    """A widget of rows. Over a slow connection, rows that stay as they are cost nothing.

    Attributes:
        palette: the colours of all of them.
    """

    palette: ClassVar[Palette] = Palette()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._strips: list[Strip] = []

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows, from the top of the widget."""
        width, palette = self.size.width, RowsWidget.palette
        strips = [
            Strip([Segment(text, palette[style]) for text, style in row]).adjust_cell_length(width)
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
        """Return the strip of a row for Textual."""
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)
        return strip.apply_style(self.rich_style)

    @property
    def text(self) -> str:
        """The visible text, without styles."""
        return "\n".join(strip.text.rstrip() for strip in self._strips)
