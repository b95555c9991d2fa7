"""Formats tables, durations, times and numbers for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from math import isfinite

from runvitals.base.terminal_text import display_width
from runvitals.base.terminal_text import inert as inert
from runvitals.model.ending import Ending, signal_name


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return rows as aligned columns; those whose index is in `right` are right-aligned."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            _pad(cell, width, is_right=i in right)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _pad(cell: str, width: int, is_right: bool) -> str:
    blanks = " " * (width - display_width(cell))
    return blanks + cell if is_right else cell + blanks


def moment(ms: int) -> str:
    """Return a time in UTC, to the second; the number itself if it is out of the calendar's range."""
    try:
        return f"{datetime.fromtimestamp(ms // 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def iso(ms: int) -> str:
    """Return a time in UTC as ISO 8601, to the millisecond; "" if it is out of the calendar's range.

    Example:
        >>> iso(1_760_000_000_123)
        '2025-10-09T08:53:20.123Z'
    """
    text = moment(ms)
    return "" if text.endswith("ms") else f"{text.replace(' ', 'T')}.{ms % 1000:03d}Z"


def number(value: float | None) -> str:
    """Return a number with four significant digits, without an exponent if possible.

    Example:
        >>> number(0.123456), number(98.76543), number(1234567.0), number(None)
        ('0.1235', '98.77', '1,234,567', '-')
    """
    if value is None:
        return "-"
    if not isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.4g}"


def ending(how: Ending) -> str:
    """Return the state of a run with the reason of its end.

    Example:
        >>> ending(Ending("crashed", signal=9, out_of_memory=True))
        'crashed (SIGKILL, out of memory)'
    """
    why = []
    if how.signal is not None:
        why.append(signal_name(how.signal))
    elif how.exit_code is not None and how.state != "finished":
        why.append(f"exit code {how.exit_code}")
    if how.out_of_memory:
        why.append("out of memory")
    return f"{how.state} ({', '.join(why)})" if why else how.state
