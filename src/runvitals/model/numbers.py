"""Numbers that others write: headers, variables, options. What is no sane number is none."""

from __future__ import annotations

_DIGITS = 20


def whole(text: str | bytes, most: int) -> int | None:
    """The whole number from 0 to `most` that a text is in ASCII digits, else None.

    Example:
        >>> whole("12", 100), whole("101", 100), whole("²", 100), whole("-1", 100)
        (12, None, None, None)
    """
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        return None
    number = int(text)
    return number if number <= most else None


def decimal(text: str, low: float, high: float) -> float | None:
    """The number from `low` to `high` that a text is, else None: for NaN, infinities and other words.

    Example:
        >>> decimal("1.5", 0.0, 10.0), decimal("nan", 0.0, 10.0), decimal("1e400", 0.0, 10.0)
        (1.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if low <= number <= high else None
