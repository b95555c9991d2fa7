"""A canvas of braille characters: each cell of the terminal has 2 × 4 dots and one colour."""

from __future__ import annotations

Span = tuple[str, str]
"""Text and the name of its style."""
Row = list[Span]

_BLANK = 0x2800
# The bit of a dot by its row and column in the cell, as Unicode numbers them.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))

# The bits of the dots from one row of a cell to another, by column.
_RUNS = tuple(
    tuple(
        tuple(sum(_BITS[row][side] for row in range(first, last + 1)) for last in range(4))
        for first in range(4)
    )
    for side in range(2)
)


class BrailleCanvas:
    """A drawing of dots with the origin at the bottom left.

    A terminal has one colour per cell: where several lines share a cell, it has the colour of the last one.

    Args:
        width, height: in cells.

    Attributes:
        cross: the column of cells of a crosshair, or None.

    Example:
        >>> canvas = BrailleCanvas(2, 1)
        >>> canvas.line(0, 0, 3, 3, "a")
        >>> canvas.rows()
        [[('⡠⠊', 'a')]]
    """

    def __init__(self, width: int, height: int) -> None:
        self.columns, self.lines = 2 * width, 4 * height
        self._dots = [[0] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]
        self.cross: int | None = None

    def dot(self, x: int, y: int, style: str) -> None:
        """Set a dot; one outside the canvas is left out."""
        if 0 <= x < self.columns and 0 <= y < self.lines:
            from_top = self.lines - 1 - y
            row, column = from_top // 4, x // 2
            self._dots[row][column] |= _BITS[from_top % 4][x % 2]
            self._styles[row][column] = style

    def line(self, x0: int, y0: int, x1: int, y1: int, style: str) -> None:
        """Draw a straight line between two dots, both included."""
        steps = max(abs(x1 - x0), abs(y1 - y0))
        if steps == 0:
            self.dot(x0, y0, style)
        for step in range(steps + 1 if steps else 0):
            self.dot(x0 + round((x1 - x0) * step / steps), y0 + round((y1 - y0) * step / steps), style)

    def vertical(self, x: int, low: int, high: int, style: str) -> None:
        """Draw a vertical line between two dots, both included, cell by cell."""
        if not 0 <= x < self.columns:
            return
        column, side = x // 2, x % 2
        top, bottom = self.lines - 1 - min(high, self.lines - 1), self.lines - 1 - max(low, 0)
        for row in range(top // 4, bottom // 4 + 1):
            first, last = max(top - 4 * row, 0), min(bottom - 4 * row, 3)
            self._dots[row][column] |= _RUNS[side][first][last]
            self._styles[row][column] = style

    def guide(self, y: int, style: str, every: int) -> None:
        """Draw dots of a horizontal guide in cells that are still empty."""
        if 0 <= y < self.lines:
            row = (self.lines - 1 - y) // 4
            for x in range(0, self.columns, every):
                if not self._dots[row][x // 2] or self._styles[row][x // 2] == style:
                    self.dot(x, y, style)

    def rows(self) -> list[Row]:
        """Return the rows of text, top first, cells of one style joined; a crosshair takes empty cells."""
        return [
            _join(dots, styles, self.cross) for dots, styles in zip(self._dots, self._styles, strict=True)
        ]


def _join(dots: list[int], styles: list[str], cross: int | None) -> Row:
    row: Row = []
    for column, (bits, style) in enumerate(zip(dots, styles, strict=True)):
        char = chr(_BLANK + bits) if bits else " "
        if column == cross:
            char, style = (char, style) if bits else ("│", "cross")
        if row and row[-1][1] == style:
            row[-1] = (row[-1][0] + char, style)
        else:
            row.append((char, style))
    return row
