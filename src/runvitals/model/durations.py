"""Durations in milliseconds."""

from __future__ import annotations

from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS


def duration_text(ms: int) -> str:
    """Return a duration in its three largest units.

    Example:
        >>> duration_text(83_000), duration_text(4_210), duration_text(93_784_000)
        ('1 min 23 s', '4.2 s', '1 d 2 h 3 min')
    """
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    seconds = ms // 1000
    parts = (
        (seconds // 86_400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    )
    first = next(i for i, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 3] if count)
