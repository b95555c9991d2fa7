"""The cells of a CSV file: numbers as people of several countries write them, and times."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Final, Literal

DecimalMark = Literal[".", ","]

EMPTY: Final = frozenset({"", "-", "–", "na", "n/a", "#n/a", "null", "none"})
"""Cells without a value, in lower case."""
_NOT_FINITE: Final = {
    **dict.fromkeys(("nan", "+nan", "-nan"), math.nan),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity", "∞", "+∞"), math.inf),
    **dict.fromkeys(("-inf", "-infinity", "-∞"), -math.inf),
}
_SPACES: Final = re.compile(r"(?<=\d)[ \u00a0\u202f'’](?=\d{3}(?!\d))")
"""What separates thousands in French and Swiss numbers."""
_POINT: Final = re.compile(r"[+-]?((\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII)
_COMMA: Final = re.compile(r"[+-]?((\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d*)?|,\d+)(e[+-]?\d+)?", re.ASCII)
_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})", re.ASCII)
"""Thousands, or three decimals: 1.234."""

_MOMENT: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d\.\d\d\.\d{4})"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)\s*(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS: Final = ((1e8, 1e11, 1e3), (1e11, 1e14, 1.0), (1e14, 1e17, 1e-3), (1e17, 1e20, 1e-6))
"""Seconds, ms, µs and ns since 1970, from 1973 to 5138: from, below, and how many ms they are."""


def is_empty(cell: str) -> bool:
    """Return whether a cell has no value."""
    return not cell or cell.strip().lower() in EMPTY


def numbers(cells: Sequence[str], mark: DecimalMark) -> list[float] | None:
    """Return the numbers in many cells, 20 times as fast as `number`.

    Returns:
        None if a cell is no number, or is written so that only `number` can read it.
    """
    text = "".join(cells)
    if "_" in text or not text.isascii():  # `float` takes 1_000 and the digits of all alphabets
        return None
    if mark == ",":
        if "." in text:
            return None
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        return list(map(float, cells))
    except ValueError:
        return None


def values(cells: Sequence[str], mark: DecimalMark) -> Sequence[float | str | None]:
    """Return what is in many cells: numbers, other texts, or None in empty cells."""
    every_number = numbers(cells, mark)
    if every_number is not None:
        return every_number
    numbers_only = numbers([cell for cell in cells if not is_empty(cell)], mark)
    if numbers_only is not None:
        following = iter(numbers_only)
        return [None if is_empty(cell) else next(following) for cell in cells]
    by_cell = {cell: _value(cell, mark) for cell in set(cells)}
    return [by_cell[cell] for cell in cells]


def _value(cell: str, mark: DecimalMark) -> float | str | None:
    if is_empty(cell):
        return None
    value = number(cell, mark)
    return cell.strip() if value is None else value


def number(cell: str, mark: DecimalMark) -> float | None:
    """Return the number in a cell; None if it is no number.

    Example:
        >>> number("1.234,5", ","), number("1,234.5", "."), number("1e3", "."), number("abc", ".")
        (1234.5, 1234.5, 1000.0, None)
    """
    text = _plain(cell)
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    form = _POINT if mark == "." else _COMMA
    if not form.fullmatch(text):
        return None
    text = text.replace(",", "") if mark == "." else text.replace(".", "").replace(",", ".")
    return float(text)


def decimal_mark(cell: str) -> DecimalMark | Literal["?"] | None:
    """Return which decimal mark a cell must have.

    Returns:
        "?" if it could have either, such as 1.234; None if it has none, or is no number.

    Example:
        >>> decimal_mark("0,5"), decimal_mark("1.234,5"), decimal_mark("0.25"), decimal_mark("1.234")
        (',', ',', '.', '?')
    """
    text = _plain(cell)
    if "." not in text and "," not in text:
        return None
    if _GROUPS.fullmatch(text):
        return "?"
    if number(text, ".") is not None:
        return None if number(text, ",") is not None else "."
    return "," if number(text, ",") is not None else None


def time_ms(cell: str) -> tuple[float, bool] | None:
    """Return the time in a cell, ms UTC, and whether it names a time zone; None if it is no time.

    Numbers are seconds, ms, µs or ns since 1970, by their size. Times without a zone are taken for UTC.

    Example:
        >>> time_ms("2024-03-31T06:30:00+05:30"), time_ms("1711852200"), time_ms("12.5")
        ((1711846800000.0, True), (1711852200000.0, True), None)
    """
    text = cell.strip()
    match = _MOMENT.fullmatch(text)
    if match is None:
        seconds = number(text, "." if decimal_mark(text) != "," else ",")
        return None if seconds is None else _since_1970(seconds)
    date = match["date"].replace("/", "-")
    day = date if "-" in date else "-".join(reversed(date.split(".")))
    clock, _, fraction = (match["time"] or "00:00").replace(",", ".").partition(".")
    zone = (match["zone"] or "Z").upper().replace("UTC", "Z").replace("Z", "+00:00")
    offset = zone if ":" in zone else f"{zone[:3]}:{zone[3:] or '00'}"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{offset}").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
    return moment.timestamp() * 1000 + (float(f"0.{fraction}") * 1000 if fraction else 0), bool(match["zone"])


def times_ms(cells: Sequence[str]) -> list[tuple[float, bool] | None]:
    """Return the times in many cells, as `time_ms`; None in empty cells, too."""
    seconds = numbers(cells, ".")
    if seconds is not None:
        return [_since_1970(each) for each in seconds]
    by_cell = {cell: None if is_empty(cell) else time_ms(cell) for cell in set(cells)}
    return [by_cell[cell] for cell in cells]


def _since_1970(number: float) -> tuple[float, bool] | None:
    for least, most, unit in _UNITS:
        if least <= number < most:
            return number * unit, True
    return None


def _plain(cell: str) -> str:
    return _SPACES.sub("", cell.strip().replace("\N{MINUS SIGN}", "-")).lower()
