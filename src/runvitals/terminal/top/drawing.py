"""Bars, sparklines and coloured lines for a terminal, in Unicode or ASCII."""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.base.terminal_text import char_width

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


def sparkline(values: Sequence[float], width: int, highest: float | None = None, unicode: bool = True) -> str:
    """The last `width` values as a line of bars, right-aligned.

    Args:
        highest: value of a full bar; default: the highest value shown.

    Example:
        >>> sparkline([0.0, 50.0, 100.0], 4, 100.0)
        ' ▁▄█'
    """
    shown = list(values)[-width:] if width > 0 else []
    top = max(shown, default=0.0) if highest is None else highest
    levels = _LEVELS if unicode else _ASCII_LEVELS
    last = len(levels) - 1
    text = "".join(levels[min(max(int(value / top * last), 0), last) if top > 0 else 0] for value in shown)
    return text.rjust(max(width, 0))


class ScreenLine:
    """One line of the screen, built piece by piece and cut at its width.

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
        """Append text, cut at the end of the line."""
        fitting = self._fitting(text)
        if fitting:
            code = _CODES[style] if self._colours else ""
            self._parts.append(f"\x1b[{code}m{fitting}\x1b[0m" if code else fitting)
        return self

    def to(self, column: int, width: int) -> ScreenLine:
        """Pad with spaces up to a column.

        Args:
            width: of the whole line.
        """
        return self.add(" " * (column - (width - self._left)))

    @property
    def left(self) -> int:
        """Remaining columns."""
        return self._left

    @property
    def text(self) -> str:
        """The line with its escape sequences."""
        return "".join(self._parts)

    def _fitting(self, text: str) -> str:
        kept = []
        for char in text:
            size = char_width(char)
            if size > self._left:
                self._left = 0
                break
            self._left -= size
            kept.append(char)
        return "".join(kept)


def usage_colour(percent: float) -> str:
    """The colour for a utilisation: green, yellow from 70 %, red from 90 %."""
    return "red" if percent >= 90.0 else "yellow" if percent >= 70.0 else "green"


def format_size(amount: float, unit: str = "B") -> str:
    """An amount with a binary prefix, in three digits.

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
