"""Bars, sparklines and lines of a width for a terminal, in Unicode or ASCII."""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.base.terminal_text import char_width

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%#"


def bar(percent: float, width: int, unicode: bool = True) -> str:
    """Return a bar of `width` columns.

    Example:
        >>> bar(50.0, 4), bar(50.0, 4, unicode=False)
        ('██░░', '##..')
    """
    filled = min(max(percent, 0.0), 100.0) / 100.0 * width
    full_cells = int(filled)
    if not unicode:
        return "#" * full_cells + "." * (width - full_cells)
    eighth = int((filled - full_cells) * 8)
    text = "█" * full_cells + (_EIGHTHS[eighth] if eighth else "")
    return text + "░" * (width - len(text))


def sparkline(values: Sequence[float], width: int, highest: float | None = None, unicode: bool = True) -> str:
    """Return the last `width` values as a line of bars, right-aligned.

    Args:
        highest: value of a full bar; default: the highest value shown.

    Example:
        >>> sparkline([0.0, 50.0, 100.0], 4, 100.0)
        ' ▁▄█'
    """
    newest = list(values)[-width:] if width > 0 else []
    top = max(newest, default=0.0) if highest is None else highest
    levels = _LEVELS if unicode else _ASCII_LEVELS
    last = len(levels) - 1
    text = "".join(levels[min(max(int(value / top * last), 0), last) if top > 0 else 0] for value in newest)
    return text.rjust(max(width, 0))


class ScreenLine:
    """One line of the screen, built piece by piece and cut at its width.

    Args:
        width: columns.

    Example:
        >>> line = ScreenLine(10)
        >>> line.add("CPU ").add("12345678").text
        'CPU 123456'
    """

    __slots__ = ("_columns_left", "_parts")

    def __init__(self, width: int) -> None:
        self._columns_left = width
        self._parts: list[str] = []

    def add(self, text: str) -> ScreenLine:
        """Append text, cut at the end of the line."""
        for char in text:
            width = char_width(char)
            if width > self._columns_left:
                self._columns_left = 0
                break
            self._columns_left -= width
            self._parts.append(char)
        return self

    def to(self, column: int, width: int) -> ScreenLine:
        """Pad with spaces up to a column of a line with `width` columns."""
        return self.add(" " * (column - (width - self._columns_left)))

    @property
    def left(self) -> int:
        """Remaining columns."""
        return self._columns_left

    @property
    def text(self) -> str:
        """The line."""
        return "".join(self._parts)


def format_size(amount: float, unit: str = "B") -> str:
    """Return an amount with a binary prefix, in three digits.

    Example:
        >>> format_size(68.5 * 2**30), format_size(1536.0, "B/s")
        ('68.5 GiB', '1.50 KiB/s')
    """
    prefixes = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
    power = 0
    while abs(amount) >= 1000.0 and power < len(prefixes) - 1:
        amount /= 1024.0
        power += 1
    digits = 0 if power == 0 or abs(amount) >= 100.0 else 1 if abs(amount) >= 10.0 else 2
    return f"{amount:.{digits}f} {prefixes[power]}{unit}"
