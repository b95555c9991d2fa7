"""Text in a given number of cells of the terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def align_right(text: str, width: int) -> str:
    """Return the text cut and right-aligned in a width."""
    fitting = cut(text, width)
    return " " * (width - cell_len(fitting)) + fitting


def align_left(text: str, width: int) -> str:
    """Return the text cut and left-aligned in a width."""
    return set_cell_size(cut(text, width), width)


def cut(text: str, width: int) -> str:
    """Return the text, cut at a width with an ellipsis.

    Example:
        >>> cut("学習 run", 6)
        '学習…'
    """
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
