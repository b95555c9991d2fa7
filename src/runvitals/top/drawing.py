"""Bars, curves and coloured lines for a terminal, in Unicode or ASCII."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%#"
_CODES = {"": "", "dim": "2", "bold": "1", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}


def bar(percent: float, width: int, unicode: bool = True) -> str:
    """A bar of `width` columns.

    Example:
        >>> bar(50.0, 4), bar(50.0, 4, unicode=False)
        ('██░░', '##..')
    """
    filled = min(max(percent, 0.0), 100.0) / 100.0 * width
    whole = int(filled)
    if not unicode:
        return "#" * whole + "." * (width - whole)
    eighth = int((filled - whole) * 8)
    text = "█" * whole + (_EIGHTHS[eighth] if eighth else "")
    return text + "░" * (width - len(text))


def curve(values: Sequence[float], width: int, highest: float | None = None, unicode: bool = True) -> str:
    """The last `width` values as a line of columns, right-aligned.

    Args:
        highest: what a full column stands for; None: the highest of the values that are shown.

    Example:
        >>> curve([0.0, 50.0, 100.0], 4, 100.0)
        ' ▁▄█'
    """
    shown = list(values)[-width:] if width > 0 else []
    top = max(shown, default=0.0) if highest is None else highest
    levels = _LEVELS if unicode else _ASCII_LEVELS
    last = len(levels) - 1
    text = "".join(levels[min(max(int(value / top * last), 0), last) if top > 0 else 0] for value in shown)
    return text.rjust(max(width, 0))


def cells(text: str) -> int:
    """How many columns a text takes: letters of East Asia take two, accents none.

    Example:
        >>> cells("学習"), cells("café")
        (4, 4)
    """
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class ScreenLine:
    """One line of a screen, built piece by piece, never wider than it may be.

    Args:
        width: columns.
        colours: whether colours may be used.

    Example:
        >>> line = ScreenLine(10, colours=False)
        >>> line.add("CPU ", "bold").add("12345678").text
        'CPU 123456'
    """

    __slots__ = ("_colours", "_left", "_parts")

    def __init__(self, width: int, colours: bool) -> None:
        self._left = width
        self._colours = colours
        self._parts: list[str] = []

    def add(self, text: str, style: str = "") -> ScreenLine:
        """Append a text, cut where the line ends."""
        fitting = self._cut(text)
        if fitting:
            code = _CODES[style] if self._colours else ""
            self._parts.append(f"\x1b[{code}m{fitting}\x1b[0m" if code else fitting)
        return self

    def to(self, column: int, width: int) -> ScreenLine:
        """Fill up with blanks to a column of a line of this width."""
        return self.add(" " * (column - (width - self._left)))

    @property
    def left(self) -> int:
        """Columns that are left."""
        return self._left

    @property
    def text(self) -> str:
        """What to write."""
        return "".join(self._parts)

    def _cut(self, text: str) -> str:
        kept = []
        for char in text:
            size = _cell(char)
            if size > self._left:
                self._left = 0
                break
            self._left -= size
            kept.append(char)
        return "".join(kept)


def grade(percent: float) -> str:
    """The colour of a use: calm, busy, nearly all."""
    return "red" if percent >= 90.0 else "yellow" if percent >= 70.0 else "green"


def size(amount: float, unit: str = "B") -> str:
    """An amount with a prefix that leaves three digits.

    Example:
        >>> size(68.5 * 2**30), size(1536.0, "B/s")
        ('68.5 GiB', '1.50 KiB/s')
    """
    prefixes = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
    power = 0
    while abs(amount) >= 1000.0 and power < len(prefixes) - 1:
        amount /= 1024.0
        power += 1
    digits = 0 if power == 0 or abs(amount) >= 100.0 else 1 if abs(amount) >= 10.0 else 2
    return f"{amount:.{digits}f} {prefixes[power]}{unit}"
