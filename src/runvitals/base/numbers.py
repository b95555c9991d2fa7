"""Parses numbers that others write: headers, environment variables, options."""

from __future__ import annotations

_DIGITS = 20


def parse_integer(text: str | bytes, most: int) -> int | None:
    """Return the integer from 0 to `most` in ASCII digits, else None.

    Example:
        >>> [parse_integer(text, 100) for text in ("12", "101", "²", "-1")]
        [12, None, None, None]
    """
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        return None
    number = int(text)
    return number if number <= most else None


def parse_number(text: str, low: float, high: float) -> float | None:
    """The number from `low` to `high` in ASCII digits, else None: also for NaN, infinities and `1_000`.

    Example:
        >>> parse_number("1.5", 0.0, 10.0), parse_number("nan", 0.0, 10.0), parse_number("1e400", 0.0, 10.0)
        (1.5, None, None)
    """
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number + 0.0 if low <= number <= high else None  # -0.0 becomes 0.0
